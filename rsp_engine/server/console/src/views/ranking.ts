// The current top k of a query: rows glide to their new places; a row opens its history.
import type { Answer, Query, Row, Term } from "../api";
import { Chart } from "../charts";
import { h, keyed, setAttr, setText } from "../dom";
import { feedOf, type Feed } from "../feed";
import { count, cut, heat, identity, iso, label, naming, number, scoreOf, shown, span, time, written } from "../format";
import { empty, isExact, link, queryChoice, showExact, showState, type View } from "../parts";
import { store } from "../store";

const GLIDE_MS = 260;
const MOST_ROWS = 200;
const WHOLE = 4000;

export function rankingView(name: string | null, go: (path: string) => void): View {
  const chosen = name ?? store.queries.find((query) => query.ranked)?.name ?? store.queries[0]?.name ?? null;
  const choice = queryChoice("Query", chosen, () => true, null, (next) => next && go(`#/ranking/${encodeURIComponent(next)}`));
  const body = h("div", { class: "fill" });
  const element = h("section", { "aria-labelledby": "title" }, h("div", { class: "head" }, h("h1", { id: "title" }, "Ranking"), choice.element), body);
  let board: Board | null = null;
  const update = (): void => {
    choice.update();
    const query = chosen === null ? undefined : store.query(chosen);
    if (query === undefined) {
      if (board !== null || store.isUp === null) return;
      if (chosen === null && store.queries.length) return go(`#/ranking/${encodeURIComponent(store.queries[0]!.name)}`);
      body.replaceChildren(
        chosen === null
          ? empty("No query is registered, so there is nothing to rank.", link("Write a query", "#/editor", "button primary"))
          : empty(`There is no query ${cut(chosen, 80)}.`, link("All queries", "#/queries")),
      );
      return;
    }
    if (board === null || board.query.created !== query.created) {
      board?.close();
      board = new Board(query);
      body.replaceChildren(board.element);
    }
    board.update(query);
  };
  update();
  const stop = store.listen(update);
  return { element, close: () => { stop(); board?.close(); } };
}

/** The answers of one query. */
class Board {
  readonly element: HTMLElement;
  private readonly feed: Feed;
  private readonly stop: () => void;
  private readonly state = h("span");
  private readonly exact = h("span");
  private readonly connection = h("span", { class: "small" });
  private readonly window = h("span", { class: "figure" });
  private readonly facts = h("span", { class: "small" });
  private readonly list = h("ol", { class: "ranking" });
  private readonly note = h("p", { class: "small" });
  private readonly graph = h("pre", { class: "payload graph", tabindex: 0, "aria-label": "Graph of the answer" });
  private readonly slider: HTMLInputElement;
  private readonly latest: HTMLButtonElement;
  private readonly windows = h("ol", { class: "windows", "aria-label": "Windows so far" });
  private readonly ids = new Map<string, number>();
  private at: number | null = null;
  private drawn: number | null = null;
  private open: string | null = null;
  private history: History | null = null;

  constructor(public query: Query) {
    this.slider = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Window", input: () => this.pick(Number(this.slider.value)) });
    this.latest = h("button", { click: () => { this.at = null; this.draw(); } }, "Latest");
    this.element = h(
      "div",
      {},
      h("div", { class: "bar" }, this.state, this.exact, h("span", { class: "when" }, h("span", { class: "small" }, "window to "), this.window), this.facts, h("span", { class: "space" }), this.connection),
      h("div", { class: "bar time" }, this.slider, this.latest, this.windows),
      this.note,
      this.graph,
      this.list,
    );
    this.feed = feedOf(query.name, query.created);
    this.stop = this.feed.listen(() => this.draw());
    this.draw();
  }

  close(): void {
    this.stop();
  }

  update(query: Query): void {
    this.query = query;
    showState(this.state, this.feed.status === "deleted" ? "deleted" : query.state, query.reason);
    if (this.feed.answers.length === 0) this.draw();
  }

  private pick(index: number): void {
    const { answers } = this.feed;
    this.at = index >= answers.length - 1 ? null : answers[index]!.id;
    this.draw();
  }

  private draw(): void {
    const { answers, status } = this.feed;
    setText(this.connection, status === "live" ? "live" : status === "deleted" ? "deleted" : `${status} …`);
    let index = this.at === null ? answers.length - 1 : answers.findIndex((each) => each.id === this.at);
    if (index < 0) index = answers.length - 1;
    const answer = answers[index];
    this.slider.max = String(Math.max(answers.length - 1, 0));
    this.slider.value = String(index);
    this.slider.disabled = answers.length < 2;
    this.latest.disabled = this.at === null;
    setAttr(this.slider, "aria-valuetext", answer ? `window to ${time(answer.window.close)}` : "no window");
    if (answer === undefined) {
      this.graph.hidden = true;
      showExact(this.exact, null);
      setText(this.note, waiting(this.query));
      return;
    }
    keyed(this.windows, answers.slice(-60), (each) => String(each.id), (each) => windowMark(each), () => undefined);
    for (const mark of this.windows.children) setAttr(mark, "class", Number((mark as HTMLElement).dataset["key"]) === answer.id ? "current" : null);
    showExact(this.exact, isExact(answer));
    setText(this.window, time(answer.window.close));
    setAttr(this.window, "title", iso(answer.window.close));
    setAttr(this.element, "data-answer", String(answer.id));
    setText(this.facts, factsOf(answer, this.query));
    setText(this.note, noteOf(answer));
    this.graph.hidden = !answer.graph;
    setText(this.graph, cut(answer.graph ?? "", WHOLE));
    if (this.drawn !== answer.id) {
      this.drawn = answer.id;
      this.rank(answer, answers[index - 1]);
    }
    this.history?.show(answers.slice(0, index + 1));
  }

  private idOf(identity: string, seen: Map<string, number>): string {
    const times = (seen.get(identity) ?? 0) + 1;
    seen.set(identity, times);
    let id = this.ids.get(identity);
    if (id === undefined) this.ids.set(identity, (id = this.ids.size));
    return times === 1 ? String(id) : `${id}/${times}`;
  }

  /** Show the rows of an answer; those that were there glide from their old places. */
  private rank(answer: Answer, before: Answer | undefined): void {
    const rows = (answer.rows ?? []).slice(0, MOST_ROWS);
    const seen = new Map<string, number>();
    const items: Item[] = rows.map((row) => ({ row, id: this.idOf(identity(row), seen), isOut: false }));
    const opened = [...this.list.children].find((each) => (each as HTMLElement).dataset["key"] === this.open);
    // An open row that leaves the ranking stays below it, with its history.
    if (opened !== undefined && !items.some((item) => item.id === this.open)) {
      items.push({ row: parts.get(opened as HTMLElement)!.row, id: this.open!, isOut: true });
    }
    const earlier = new Map<string, number>();
    const again = new Map<string, number>();
    for (const [place, row] of (before?.rows ?? []).entries()) earlier.set(this.idOf(identity(row), again), place);
    const scores = rows.map(scoreOf).filter((score): score is number => score !== null && Number.isFinite(score));
    const most = Math.max(...scores.map(Math.abs), 1e-300);
    const length = answer.window.close - answer.window.open;
    const old = new Map<string, number>();
    const isMoving = !matchMedia("(prefers-reduced-motion: reduce)").matches && document.visibilityState === "visible";
    if (isMoving) for (const child of this.list.children) old.set((child as HTMLElement).dataset["key"]!, (child as HTMLElement).offsetTop);
    keyed(this.list, items, (item) => item.id, ({ id }) => this.line(id), (element, { row, id, isOut }, place) => {
      parts.get(element)!.update(row, this.query, { place, was: before === undefined ? null : earlier.get(id) ?? -1, most, length, isOut });
    });
    this.list.classList.toggle("unranked", !this.query.ranked);
    this.list.classList.toggle("unscored", scores.length === 0);
    this.list.classList.toggle("aged", rows.some((row) => row.age !== undefined));
    if (isMoving) glide(this.list, old);
  }

  private line(id: string): HTMLElement {
    return rankedLine((element) => this.toggle(id, element));
  }

  private toggle(id: string, element: HTMLElement): void {
    const line = parts.get(element)!;
    const was = this.open;
    if (this.open !== null) {
      const other = [...this.list.children].find((each) => (each as HTMLElement).dataset["key"] === this.open) as HTMLElement | undefined;
      if (other !== undefined) parts.get(other)!.collapse();
      this.open = null;
      this.history = null;
    }
    if (was === id) return;
    this.open = id;
    this.history = new History(line.row, this.query);
    line.expand(this.history.element);
    const index = this.feed.answers.findIndex((each) => each.id === this.drawn);
    this.history.show(this.feed.answers.slice(0, index + 1));
  }
}

function waiting(query: Query): string {
  if (query.state === "failed") return `The query has failed: ${query.reason ?? "see the messages of the server"}.`;
  if (query.state === "paused") return "The query is paused, and has not answered yet.";
  const names = query.streams.map((name) => cut(name, 60)).join(", ");
  return `No window has closed yet. A window closes when a later element arrives on ${names}.`;
}

function noteOf(answer: Answer): string {
  if (answer.boolean !== undefined) return answer.boolean === null ? "Nothing to report." : `The answer is ${answer.boolean ? "yes" : "no"}.`;
  if (answer.graph !== undefined) return answer.graph ? "" : "An empty graph.";
  const rows = answer.rows?.length ?? 0;
  const { cold_misses: cold = 0, unanswered = 0 } = answer.stats;
  if (rows === 0 && cold) return `No row in this window: the remote values of ${count(cold)} keys are not known${unanswered ? `, and the service did not answer for ${count(unanswered)}` : ""}.`;
  if (rows === 0) return "No row in this window.";
  return rows > MOST_ROWS ? `The first ${MOST_ROWS} of ${count(rows)} rows.` : "";
}

function factsOf(answer: Answer, query: Query): string {
  const { stats } = answer;
  const facts = [`answer ${count(answer.id)}`];
  if (stats.budget_spent !== undefined) facts.push(`${count(stats.budget_spent)} fetched`);
  if (stats.stale) facts.push(`${count(stats.stale)} stale`);
  if (stats.cold_misses) facts.push(`${count(stats.cold_misses)} cold`);
  if (stats.unanswered) facts.push(`${count(stats.unanswered)} unanswered`);
  for (const [fault, times] of Object.entries(stats.faults ?? {})) facts.push(`${fault}: ${count(times)}`);
  if (stats.ndcg !== undefined) facts.push(`nDCG ${stats.ndcg.toFixed(2)}`);
  if (query.services[0]) facts.push(query.services[0].policy);
  return facts.join(" · ");
}

function windowMark(answer: Answer): HTMLElement {
  const text = `answer ${answer.id}, window to ${time(answer.window.close)}`;
  return h("li", { "data-id": answer.id, "data-close": answer.window.close, "data-exact": String(isExact(answer)), title: text }, h("span", { class: "unseen" }, text));
}

function glide(list: HTMLElement, old: Map<string, number>): void {
  const moves: [HTMLElement, number | undefined, number][] = [];
  for (const child of list.children) {
    const element = child as HTMLElement;
    moves.push([element, old.get(element.dataset["key"]!), element.offsetTop]);
  }
  for (const [element, from, to] of moves) {
    if (from === undefined) {
      if (old.size) element.animate([{ opacity: 0 }, { opacity: 1 }], { duration: GLIDE_MS, easing: "ease-out" });
    } else if (from !== to) {
      element.animate([{ transform: `translateY(${from - to}px)` }, { transform: "none" }], { duration: GLIDE_MS, easing: "ease-out" });
    }
  }
}

interface Item { row: Row; id: string; isOut: boolean }
interface Place { place: number; was: number | null; most: number; length: number; isOut: boolean }
interface Line {
  row: Row;
  update: (row: Row, query: Query, where: Place) => void;
  expand: (panel: HTMLElement) => void;
  collapse: () => void;
}

const parts = new WeakMap<HTMLElement, Line>();

/** Create the line of an object. */
function rankedLine(toggle: (element: HTMLElement) => void): HTMLElement {
  const rank = h("span", { class: "rank" }), move = h("span", { class: "move" });
  const title = h("bdi", { class: "title" }), rest = h("bdi", { class: "rest" });
  const fill = h("span", { class: "fill" }), score = h("span", { class: "figure score" });
  const bar = h("span", { class: "score-bar", "aria-hidden": "true" }, fill);
  const swatch = h("span", { class: "swatch", "aria-hidden": "true" }), age = h("span", { class: "age" }, swatch);
  const ageText = h("span");
  age.append(ageText);
  const element = h("li", { class: "line" });
  const button = h("button", { class: "summary", "aria-expanded": "false", click: () => toggle(element) },
    rank, move, h("span", { class: "names" }, title, rest), h("span", { class: "bars" }, bar, score), age);
  element.append(button);
  const line: Line = {
    row: { bindings: {} },
    update: (row, query, { place, was, most, length, isOut }) => {
      line.row = row;
      setAttr(element, "class", isOut ? "line out" : "line");
      setText(rank, isOut ? "–" : String(row.rank ?? place + 1));
      const [text, told] = isOut ? ["out", "out"] : was === null ? ["", ""] : was < 0 ? ["new", "new"] : was === place ? ["", ""] : was > place ? [`▲${was - place}`, `up ${was - place}`] : [`▼${place - was}`, `down ${place - was}`];
      setText(move, text!);
      setAttr(move, "class", `move ${!isOut && was !== null && was < 0 ? "new" : was !== null && was > place ? "up" : "down"}`);
      setAttr(move, "aria-label", told || null);
      setAttr(move, "role", told ? "img" : null);
      const name = label(row, query);
      setText(title, cut(name));
      setAttr(title, "title", cut(name, 500));
      setText(rest, restOf(row, query));
      const value = scoreOf(row);
      setText(score, number(value));
      const width = `${value === null ? 0 : Math.min(Math.abs(value) / most, 1) * 100}%`;
      if (fill.style.width !== width) fill.style.width = width;
      setAttr(fill, "class", value !== null && value < 0 ? "fill negative" : "fill");
      age.hidden = row.age === undefined;
      if (row.age !== undefined) {
        setText(ageText, row.age <= 0 ? "fresh" : span(row.age));
        setAttr(swatch, "class", `swatch heat-${heat(row.age, length)}`);
        setAttr(age, "title", row.age <= 0 ? "The remote value was fetched for this window." : `The remote value was fetched ${span(row.age)} before the window closed.`);
      }
    },
    expand: (panel) => {
      setAttr(button, "aria-expanded", "true");
      element.append(panel);
    },
    collapse: () => {
      setAttr(button, "aria-expanded", "false");
      element.lastElementChild?.remove();
    },
  };
  parts.set(element, line);
  return element;
}

function restOf(row: Row, query: Query): string {
  const [first] = naming(row);
  const score = scoreOf(row);
  const isScore = (term: Term): boolean => term.type === "literal" && score !== null && Number(term.value) === score;
  const named = query.variables.filter((name) => name !== first && name in row.bindings);
  const [last] = named.slice(-1);
  const names = named.filter((name) => name !== last || !isScore(row.bindings[name]!));
  return names.map((name) => {
    const term = row.bindings[name]!;
    const value = Number(term.value);
    const isNumber = term.type === "literal" && (term.datatype ?? "").startsWith("http://www.w3.org/2001/XMLSchema#") && term.value !== "" && Number.isFinite(value);
    return `${name} ${isNumber ? number(value) : cut(shown(term, query.prefixes), 40)}`;
  }).join(" · ");
}

/** The rank and the score of an object over the last windows, and its values in full. */
class History {
  readonly element: HTMLElement;
  private readonly ranks = new Chart("Rank", { inverted: true, whole: true, height: 130 });
  private readonly scores = new Chart("Score", { height: 130 });
  private readonly key: string;
  private readonly values = h("dl", { class: "values" });
  private shown = "";

  constructor(row: Row, private readonly query: Query) {
    this.key = identity(row);
    this.element = h("div", { class: "history" }, h("div", { class: "charts" }, this.ranks.element, this.scores.element), this.values);
    this.describe(row);
  }

  private describe(row: Row): void {
    const now = JSON.stringify(Object.values(row.bindings).map((term) => String(term.value).length > 200 ? String(term.value).length : term.value));
    if (now === this.shown) return;
    this.shown = now;
    const names = [...new Set([...this.query.variables, ...Object.keys(row.bindings)])].filter((name) => name in row.bindings);
    this.values.replaceChildren(...names.flatMap((name) => [h("dt", {}, `?${name}`), h("dd", {}, whole(written(row.bindings[name]!)))]));
  }

  show(answers: Answer[]): void {
    const times: number[] = [], ranks: (number | null)[] = [], scores: (number | null)[] = [];
    for (const answer of answers.slice(-60)) {
      const place = (answer.rows ?? []).findIndex((row) => identity(row) === this.key);
      const row = answer.rows?.[place];
      times.push(answer.window.close);
      ranks.push(row === undefined ? null : row.rank ?? place + 1);
      scores.push(row === undefined ? null : scoreOf(row));
      if (row !== undefined && answer === answers.at(-1)) this.describe(row);
    }
    this.ranks.show(times, [{ label: "rank", values: ranks, colour: 1 }]);
    this.scores.show(times, [{ label: "score", values: scores, colour: 2 }]);
  }
}

/** Show a text: what is long, on demand. */
export function whole(text: string): HTMLElement {
  const isLong = text.length > 300;
  const value = h("bdi", { class: "text" }, cut(text, 300));
  if (!isLong) return value;
  const more = h("button", { click: () => { value.textContent = text; more.remove(); } }, `Show all ${count(text.length)} characters`);
  return h("span", {}, value, " ", more);
}
