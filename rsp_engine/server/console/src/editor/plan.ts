// The plan of a query as a graph: boxes in layers, from the sources down to the answer.
import type { PlanGraph, PlanPart } from "../api";
import { h, svg } from "../dom";

export interface PlanPicture { element: HTMLElement; show: (graph: PlanGraph | null, why: string) => void }

export function planPicture(): PlanPicture {
  const note = h("p", { class: "small" }, "The plan of a query without errors is shown here.");
  const graph = h("div", { class: "plan", tabindex: 0, role: "group", "aria-label": "Plan of the query" });
  let kind = "physical plan", known: PlanGraph | null = null;
  const tabs = ["physical plan", "logical plan"].map((title) =>
    h("button", { "aria-pressed": String(title === kind), click: () => { kind = title; draw(); } }, title[0]!.toUpperCase() + title.slice(1)),
  );
  const element = h("div", { class: "plan-panel" }, h("div", { class: "row" }, h("h2", {}, "Plan"), h("span", { class: "space" }), h("div", { class: "segmented" }, ...tabs)), note, graph);
  const observer = new ResizeObserver(() => { if (known !== null) arrows(graph, partOf(known, kind)); });
  observer.observe(graph);
  graph.hidden = true;
  const draw = (): void => {
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.textContent!.toLowerCase() === kind));
    graph.hidden = known === null;
    graph.replaceChildren();
    if (known === null) return;
    const part = partOf(known, kind);
    graph.append(...layers(part).map((names) => h("div", { class: "layer" }, ...names.map((name) => box(part, name)))));
    arrows(graph, part);
  };
  return {
    element,
    show: (next, why) => {
      note.textContent = why;
      note.hidden = why === "";
      if (JSON.stringify(next) === JSON.stringify(known)) return;
      known = next;
      draw();
    },
  };
}

const partOf = (graph: PlanGraph, title: string): PlanPart => graph.parts.find((part) => part.title === title) ?? graph.parts[0]!;

/** Return the names of boxes in layers: each stands above those that it flows to. */
function layers(part: PlanPart): string[][] {
  const below = new Map<string, string[]>();
  for (const { start, end } of part.arrows) below.set(start, [...(below.get(start) ?? []), end]);
  const depths = new Map<string, number>();
  const depth = (name: string): number => {
    const known = depths.get(name);
    if (known !== undefined) return known;
    depths.set(name, 0);
    const found = Math.max(-1, ...(below.get(name) ?? []).map(depth)) + 1;
    depths.set(name, found);
    return found;
  };
  const rows: string[][] = [];
  for (const { name } of part.boxes) (rows[depth(name)] ??= []).push(name);
  // Boxes stand above those that they flow to, so that few arrows cross.
  for (let row = 1; row < rows.length; row++) {
    const places = new Map(rows[row - 1]!.map((name, place) => [name, place]));
    const mean = (name: string): number => {
      const found = (below.get(name) ?? []).flatMap((each) => (places.has(each) ? [places.get(each)!] : []));
      return found.length ? found.reduce((a, b) => a + b, 0) / found.length : 0;
    };
    rows[row]!.sort((a, b) => mean(a) - mean(b));
  }
  return rows.reverse();
}

function box(part: PlanPart, name: string): HTMLElement {
  const { kind, title, lines } = part.boxes.find((each) => each.name === name)!;
  // Continuation lines are indented; they wrap by themselves here.
  const texts: string[] = [];
  for (const line of lines) {
    if (line.startsWith("  ") && texts.length) texts[texts.length - 1] += ` ${line.trim()}`;
    else texts.push(line);
  }
  return h("div", { class: `box box-${kind}`, "data-box": name }, h("strong", {}, title), ...texts.map((text) => h("div", {}, text)));
}

/** Draw the arrows between the boxes that stand there now. */
function arrows(graph: HTMLElement, part: PlanPart): void {
  graph.querySelector("svg")?.remove();
  const frame = graph.getBoundingClientRect();
  const places = new Map<string, DOMRect>();
  for (const each of graph.querySelectorAll<HTMLElement>("[data-box]")) places.set(each.dataset["box"]!, each.getBoundingClientRect());
  const lines = part.arrows.flatMap(({ start, end }) => {
    const from = places.get(start), to = places.get(end);
    if (from === undefined || to === undefined) return [];
    const left = frame.left - graph.scrollLeft, top = frame.top - graph.scrollTop;
    const [x1, y1] = [from.left + from.width / 2 - left, from.bottom - top];
    const [x2, y2] = [to.left + to.width / 2 - left, to.top - top];
    const bend = Math.max((y2 - y1) / 2, 8);
    return [
      svg("path", { class: "arrow", d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2 - 5}` }),
      svg("path", { class: "arrow-head", d: `M${x2} ${y2}l-4 -7h8z` }),
    ];
  });
  graph.prepend(svg("svg", { class: "arrows", width: graph.scrollWidth, height: graph.scrollHeight, "aria-hidden": "true" }, ...lines));
}
