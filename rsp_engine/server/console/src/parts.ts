// Parts that several views share.
import { h, setAttr, setText } from "./dom";
import type { Answer, Query } from "./api";
import { store } from "./store";

export interface View {
  element: HTMLElement;
  /** Stop listening. */
  close: () => void;
}

const MARKS: Record<string, string> = {
  running: "●", starting: "◌", paused: "❚❚", failed: "✕", finished: "■", restarting: "↻", deleted: "✕",
};

/** Let an element be the badge of a state: a mark and a word. */
export function showState(element: HTMLElement, state: string, reason: string | null): void {
  setAttr(element, "class", `badge state-${state}`);
  setText(element, `${MARKS[state] ?? "○"} ${state}`);
  setAttr(element, "title", reason);
}

/** Let an element be the badge of exactness. */
export function showExact(element: HTMLElement, exact: boolean | null | undefined): void {
  const known = exact !== null && exact !== undefined;
  setAttr(element, "class", `badge ${exact ? "exact" : known ? "approximate" : "unknown"}`);
  setText(element, exact ? "= exact" : known ? "≈ approximate" : "–");
  setAttr(
    element,
    "title",
    exact ? "The answer is that of all remote data." : known ? "Some remote values may be out of date." : null,
  );
}

export const isExact = (answer: Answer): boolean => answer.stats.exact !== false;

/** Create a field: a label with what it is for. */
export function field(label: string, control: HTMLElement, help?: string): HTMLElement {
  return h("label", { class: "field" }, h("span", { class: "label" }, label), control, help ? h("span", { class: "help" }, help) : null);
}

/** Create a choice among queries, which follows what is registered. */
export function queryChoice(label: string, chosen: string | null, fits: (query: Query) => boolean, none: string | null, choose: (name: string | null) => void): { element: HTMLElement; update: () => void } {
  const select = h("select", { change: () => choose(select.value || null) });
  let shown = "";
  const update = (): void => {
    const names = store.queries.filter(fits).map((query) => query.name);
    if (chosen !== null && !names.includes(chosen)) names.unshift(chosen);
    const now = JSON.stringify(names);
    if (now === shown) return;
    shown = now;
    const value = select.value || chosen || "";
    select.replaceChildren(...(none === null ? [] : [h("option", { value: "" }, none)]), ...names.map((name) => h("option", { value: name }, name)));
    select.value = value;
  };
  update();
  return { element: field(label, select), update };
}

/** Create what stands in an empty view. */
export function empty(text: string, ...actions: HTMLElement[]): HTMLElement {
  return h("div", { class: "empty" }, h("p", {}, text), actions.length ? h("div", { class: "row" }, ...actions) : null);
}

export function link(text: string, href: string, kind = "button"): HTMLElement {
  return h("a", { href, class: kind }, text);
}

let notice: HTMLElement | null = null;

/** Say something for a few seconds, also to screen readers. */
export function say(text: string, isBad = false): void {
  notice ??= document.body.appendChild(h("div", { class: "notice", role: "status" }));
  setText(notice, text);
  setAttr(notice, "class", `notice shown${isBad ? " bad" : ""}`);
  const current = notice;
  setTimeout(() => { if (current.textContent === text) setAttr(current, "class", "notice"); }, isBad ? 10_000 : 4000);
}
