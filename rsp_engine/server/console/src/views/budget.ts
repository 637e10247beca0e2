// What the budget of a query buys, window by window; two queries side by side compare policies.
import type { Answer, Query, Stats } from "../api";
import { Chart } from "../charts";
import { h, keyed, setAttr, setText } from "../dom";
import { feedOf, type Feed } from "../feed";
import { compact, count, cut, iso, number, time } from "../format";
import { empty, isExact, link, queryChoice, type View } from "../parts";
import { store } from "../store";

const SHOWN = 60;
const MOST_KEYS = 200;
const hasBudget = (query: Query): boolean => query.services.length > 0;

export function budgetView(name: string | null, other: string | null, go: (path: string) => void): View {
  const first = name ?? store.queries.find(hasBudget)?.name ?? null;
  const to = (one: string | null, two: string | null): void =>
    go(`#/budget${one ? `/${encodeURIComponent(one)}` : ""}${two && two !== one ? `?with=${encodeURIComponent(two)}` : ""}`);
  const one = queryChoice("Query", first, hasBudget, null, (next) => to(next, other));
  const two = queryChoice("Compare with", other, hasBudget, "nothing", (next) => to(first, next));
  const both = new Chart("nDCG against the oracle", { range: [0, 1.05], height: 170 });
  const precise = new Chart("Precision against the oracle", { range: [0, 1.05], height: 170 });
  const quality = h("div", { class: "charts quality" }, both.element, precise.element);
  const columns = h("div", { class: "columns" });
  const nothing = empty("No query reads remote data: a query with SERVICE has a budget.", link("Write one", "#/editor", "button primary"));
  const element = h("section", { "aria-labelledby": "title" }, h("div", { class: "head" }, h("h1", { id: "title" }, "Budget"), one.element, two.element), nothing, quality, columns);
  let sides: Side[] = [];
  const compare = (): void => {
    const times = [...new Set(sides.flatMap((side) => side.answers().map((each) => each.window.close)))].sort((a, b) => a - b).slice(-SHOWN);
    const measured = sides.some((side) => side.answers().some((each) => each.stats.ndcg !== undefined));
    quality.hidden = !measured;
    if (!measured) return;
    for (const [chart, pick] of [[both, (s: Stats) => s.ndcg], [precise, (s: Stats) => s.precision]] as const) {
      chart.show(times, sides.map((side, index) => {
        const known = new Map(side.answers().map((each) => [each.window.close, pick(each.stats) ?? null]));
        return { label: side.query.name, values: times.map((at) => known.get(at) ?? null), colour: index + 1, dash: index ? [6, 4] : [] };
      }));
    }
  };
  const update = (): void => {
    one.update();
    two.update();
    if (first === null && store.queries.some(hasBudget)) return to(store.queries.find(hasBudget)!.name, other);
    const found = [first, other].flatMap((each) => store.queries.filter((query) => query.name === each));
    nothing.hidden = found.length > 0 || store.isUp === null;
    const key = (queries: readonly Query[]): string => JSON.stringify(queries.map((query) => [query.name, query.created]));
    if (key(found) !== key(sides.map((side) => side.query))) {
      for (const side of sides) side.close();
      sides = found.map((query) => new Side(query, compare));
      columns.replaceChildren(...sides.map((side) => side.element));
      setAttr(columns, "class", sides.length > 1 ? "columns two" : "columns");
    }
    for (const [index, side] of sides.entries()) side.update(found[index]!);
    if (sides.length === 0) quality.hidden = true;
  };
  update();
  const stop = store.listen(update);
  return { element, close: () => { stop(); for (const side of sides) side.close(); } };
}

/** The budget of one query. */
class Side {
  readonly element: HTMLElement;
  private readonly feed: Feed;
  private readonly stop: () => void;
  private readonly summary = h("dl", { class: "facts" });
  private readonly policy = h("p", { class: "small" });
  private readonly chart = new Chart("Keys per window", { height: 190 });
  private readonly rows = h("tbody");
  private readonly keys = h("tbody");
  private readonly keysTitle = h("h3", {}, "Elected keys");
  private readonly keysNote = h("p", { class: "small" });
  private readonly keysTable: HTMLElement;
  private readonly tip = h("p", { class: "small" });
  private picked: number | null = null;

  constructor(public query: Query, private readonly changed: () => void) {
    const heads = ["Window", "Spent", "Changed", "Unchanged", "Unanswered", "Stale", "Cold", "nDCG", "Precision"];
    const cells = heads.map((head) => h("th", { scope: "col" }, head));
    this.keysTable = h("table", { class: "figures keys" }, h("thead", {}, h("tr", {}, ...["Key", "Value for the policy", "Its value had"].map((head) => h("th", { scope: "col" }, head)))), this.keys);
    this.element = h("div", { class: "side", "data-query": query.name },
      h("h2", {}, link(query.name, `#/ranking/${encodeURIComponent(query.name)}`, "name")), this.policy, this.summary, this.chart.element, this.tip,
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Windows of ${query.name}` }, h("table", { class: "figures" }, h("thead", {}, h("tr", {}, ...cells)), this.rows)),
      this.keysTitle, this.keysNote,
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Elected keys of ${query.name}` }, this.keysTable));
    this.feed = feedOf(query.name, query.created);
    this.stop = this.feed.listen(() => this.draw());
    this.draw();
  }

  answers(): Answer[] {
    return this.feed.answers.slice(-SHOWN);
  }

  close(): void {
    this.stop();
  }

  update(query: Query): void {
    this.query = query;
    const services = query.services.map(({ service, policy, budget }) => `${policy}, ${budget === null ? "no limit of keys" : `at most ${count(budget)} keys a window`}, from ${cut(service, 80)}`);
    setText(this.policy, services.join("; "));
    const { status } = query;
    const outcomes = Object.values(status.refreshed);
    const total = (name: string): number => outcomes.reduce((sum, each) => sum + (each[name] ?? 0), 0);
    const means = this.means();
    const facts: [string, string][] = [
      ["windows", count(status.windows)], ["exact", count(status.exact)], ["keys fetched", count(status.budget_spent)],
      ["changed", count(total("changed"))], ["unchanged", count(total("unchanged"))], ["unanswered", count(total("failed"))],
      ["requests", count(status.requests)], ["mean nDCG", means.ndcg], ["mean precision", means.precision],
    ];
    keyed(this.summary, facts, ([name]) => name, ([name]) => h("div", {}, h("dt", {}, name), h("dd")), (element, [, value]) => setText(element.lastElementChild!, value));
  }

  private means(): { ndcg: string; precision: string } {
    const mean = (pick: (stats: Stats) => number | undefined): string => {
      const values = this.feed.answers.map((each) => pick(each.stats)).filter((value): value is number => value !== undefined);
      return values.length ? (values.reduce((a, b) => a + b, 0) / values.length).toFixed(3) : "–";
    };
    return { ndcg: mean((stats) => stats.ndcg), precision: mean((stats) => stats.precision) };
  }

  private draw(): void {
    const answers = this.answers();
    const { options } = this.query;
    const missing = [...(options["oracle"] ? [] : ["oracle"]), ...(options["elected"] ? [] : ["elected"])];
    const told: Record<string, string> = { oracle: "oracle: nDCG and precision of each answer", elected: "elected: the keys that each window fetches, with their values for the policy" };
    setText(this.tip, missing.length ? `Not asked for: ${missing.map((each) => told[each]).join("; ")}. The editor has these options.` : "");
    const pick = (get: (stats: Stats) => number | null): (number | null)[] => answers.map((each) => get(each.stats));
    this.chart.show(answers.map((each) => each.window.close), [
      { label: "spent", values: pick((s) => s.budget_spent ?? 0), colour: 1 },
      { label: "stale", values: pick((s) => s.stale ?? 0), colour: 2, dash: [8, 4] },
      { label: "cold", values: pick((s) => s.cold_misses ?? 0), colour: 3, dash: [2, 3] },
      { label: "unanswered", values: pick((s) => s.unanswered ?? 0), colour: 4, dash: [10, 3, 2, 3] },
    ]);
    keyed(this.rows, answers.slice(-20).reverse(), (each) => String(each.id), (each) => this.row(each), () => undefined);
    this.drawKeys();
    this.update(this.query);
    this.changed();
  }

  private row(answer: Answer): HTMLElement {
    const { stats } = answer;
    const outcomes = outcomesOf(stats);
    const figures = [stats.budget_spent ?? 0, outcomes?.changed, outcomes?.unchanged, stats.unanswered ?? 0, stats.stale ?? 0, stats.cold_misses ?? 0];
    const pick = h("button", { class: "plain", title: iso(answer.window.close) ?? "", click: () => { this.picked = this.picked === answer.id ? null : answer.id; this.drawKeys(); } }, time(answer.window.close));
    return h("tr", { "data-id": answer.id },
      h("th", { scope: "row" }, pick, isExact(answer) ? h("span", { title: "exact" }, " =", h("span", { class: "unseen" }, " exact")) : null),
      ...figures.map((value) => h("td", {}, count(value))),
      ...[stats.ndcg, stats.precision].map((value) => h("td", {}, value === undefined ? "–" : value.toFixed(3))));
  }

  private shown(term: string): string {
    return term.startsWith("<") && term.endsWith(">") ? compact(term.slice(1, -1), this.query.prefixes) : term;
  }

  /** Show which keys a window fetched: the last one, or that which was chosen. */
  private drawKeys(): void {
    const { answers } = this.feed;
    const answer = answers.find((each) => each.id === this.picked) ?? answers.at(-1);
    for (const row of this.rows.children) setAttr(row, "aria-current", Number((row as HTMLElement).dataset["id"]) === this.picked ? "true" : null);
    const fetched = answer?.stats.elected;
    const hasKeys = fetched !== undefined;
    const others = (answer?.stats.budget_spent ?? 0) - (fetched?.length ?? 0);
    this.keysTitle.hidden = this.keysTable.hidden = !hasKeys;
    setText(this.keysNote, !hasKeys ? "" : `${count(fetched.length)} keys for the window to ${time(answer!.window.close)}, in the order of the policy${others > 0 ? `, and ${count(others)} cold ones` : ""}${this.picked === null ? " (the last window; choose another one above)" : ""}.`);
    if (!hasKeys) return;
    this.keys.replaceChildren(...fetched.slice(0, MOST_KEYS).map((each) =>
      h("tr", {},
        h("th", { scope: "row" }, h("bdi", {}, Object.values(each.key).map((term) => cut(this.shown(term), 60)).join(", "))),
        h("td", {}, number(each.value)), h("td", { class: "word" }, each.outcome === "unanswered" ? "no answer" : each.outcome))));
  }
}

function outcomesOf(stats: Stats): { changed: number; unchanged: number } | null {
  if (stats.elected === undefined) return null;
  const of = (outcome: string): number => stats.elected!.filter((each) => each.outcome === outcome).length;
  return { changed: of("changed"), unchanged: of("unchanged") };
}
