// Write a query, see its mistakes as you type and its plan beside it, and start it.
import { get, post, Problem, told, type Diagnostic, type Option, type Outline, type PlanGraph, type Query, type Validation, type Vocabulary } from "../api";
import { h, keyed, setAttr, setText } from "../dom";
import { EXAMPLES } from "../editor/examples";
import { pane, type Pane } from "../editor/pane";
import { planPicture } from "../editor/plan";
import { field, say, type View } from "../parts";
import { store } from "../store";

const DRAFT = "rsp-console-draft";

interface Draft { text: string; options: [string, string][]; services: Record<string, string>; start: string; name: string; group: string }

const FRESH: Draft = { text: EXAMPLES[0]!.text, options: [], services: {}, start: "now", name: "", group: "" };

let vocabulary: Vocabulary | null = null;

function loaded(): Draft {
  try {
    return { ...FRESH, ...JSON.parse(sessionStorage.getItem(DRAFT) ?? "{}") };
  } catch {
    return { ...FRESH };
  }
}

export function editorView(from: string | null, go: (path: string) => void): View {
  const element = h("section", { "aria-labelledby": "title" }, h("div", { class: "head" }, h("h1", { id: "title" }, "Editor")));
  let editor: Editor | null = null, isClosed = false;
  const start = async (): Promise<void> => {
    vocabulary ??= await get<Vocabulary>("/vocabulary");
    if (isClosed) return;
    const draft = loaded();
    const query = from === null ? undefined : store.query(from) ?? (await get<Query>(`/queries/${encodeURIComponent(from)}`).catch(() => undefined));
    if (query !== undefined) Object.assign(draft, draftOf(query));
    editor = new Editor(draft, vocabulary, go);
    element.replaceChildren(...editor.elements);
  };
  start().catch((error: unknown) => say(told(error), true));
  return { element, close: () => { isClosed = true; editor?.close(); } };
}

class Editor {
  readonly elements: HTMLElement[];
  private readonly pane: Pane;
  private readonly plan = planPicture();
  private readonly problems = h("ul", { class: "problems", "aria-label": "Problems" });
  private readonly verdict = h("p", { class: "verdict", role: "status" });
  private readonly services = h("div", { class: "fields" });
  private readonly options = h("ul", { class: "options" });
  private readonly start: HTMLButtonElement;
  private outline: Outline | null = null;
  private checking: AbortController | null = null;

  constructor(private readonly draft: Draft, private readonly words: Vocabulary, private readonly go: (path: string) => void) {
    this.pane = pane(draft.text, words, (text) => this.check(text), () => this.save());
    const examples = h("select", { change: () => { const found = EXAMPLES[Number(examples.value)]; if (found) this.pane.setText(found.text); examples.value = ""; } },
      h("option", { value: "" }, "Choose …"), ...EXAMPLES.map((each, index) => h("option", { value: index }, each.title)));
    this.start = h("button", { class: "primary", click: () => void this.register() }, "Start");
    const name = h("input", { value: draft.name, placeholder: "as REGISTER says", maxlength: 64, input: () => { draft.name = name.value; this.save(); } });
    const group = h("input", { value: draft.group, placeholder: "its own", maxlength: 64, input: () => { draft.group = group.value; this.save(); } });
    const begin = h("select", { change: () => { draft.start = begin.value; this.save(); } }, h("option", { value: "now" }, "now"), h("option", { value: "earliest" }, "the earliest element kept"));
    begin.value = draft.start;
    const adding = h("select", { change: () => { if (adding.value) { this.addOption(adding.value); adding.value = ""; } } }, h("option", { value: "" }, "Add an option …"), ...groups(words.options));
    adding.setAttribute("aria-label", "Add an option");
    this.elements = [
      h("div", { class: "head" }, h("h1", { id: "title" }, "Editor"), field("Start from", examples), h("span", { class: "space" }), this.start),
      h("div", { class: "editor" },
        h("div", { class: "writing" }, this.pane.element, this.verdict, this.problems,
          h("div", { class: "fields" }, field("Name", name), field("Answer windows from", begin), field("Group", group)),
          this.services,
          h("h2", {}, "Options"), this.options, adding),
        this.plan.element),
    ];
    this.drawOptions();
  }

  close(): void {
    this.checking?.abort();
  }

  private save(): void {
    this.draft.text = this.pane.text();
    sessionStorage.setItem(DRAFT, JSON.stringify(this.draft));
  }

  private bindings(): Record<string, unknown> {
    const wanted = this.outline?.services ?? [];
    const services = Object.fromEntries(wanted.flatMap((iri) => (this.draft.services[iri] ? [[iri, this.draft.services[iri]]] : [])));
    const options = Object.fromEntries(this.draft.options.filter(([, text]) => text !== "").map(([name, text]) => [name, valueOf(this.optionNamed(name), text)]));
    return { services, options };
  }

  private optionNamed(name: string): Option | undefined {
    return this.words.options.find((each) => each.name === name);
  }

  private async check(text: string): Promise<Validation | null> {
    this.checking?.abort();
    const stopper = (this.checking = new AbortController());
    try {
      const bindings = this.bindings();
      let found = await post<Validation>("/validate", { text, ...bindings }, stopper.signal);
      this.outline = found.query ?? this.outline;
      // Services are bound once it is known which ones the text names.
      if (JSON.stringify(this.bindings()) !== JSON.stringify(bindings)) found = await post("/validate", { text, ...this.bindings() }, stopper.signal);
      this.showProblems(found);
      this.drawServices();
      void this.explain(text, found.ok, stopper.signal);
      return found;
    } catch (error) {
      if (!stopper.signal.aborted) {
        setText(this.verdict, told(error));
        setAttr(this.verdict, "class", "verdict bad");
      }
      return null;
    }
  }

  private async explain(text: string, ok: boolean, signal: AbortSignal): Promise<void> {
    if (!ok) return this.plan.show(null, "The plan is shown once the query has no errors.");
    try {
      this.plan.show(await post<PlanGraph>("/explain", { text, format: "graph", ...this.bindings() }, signal), "");
    } catch (error) {
      if (!signal.aborted) this.plan.show(null, told(error));
    }
  }

  private showProblems({ ok, diagnostics }: Validation): void {
    const errors = diagnostics.filter((each) => each.severity === "error").length, warnings = diagnostics.length - errors;
    const counted = (n: number, what: string): string => (n ? `${n} ${what}${n > 1 ? "s" : ""}` : "");
    setText(this.verdict, diagnostics.length ? [counted(errors, "error"), counted(warnings, "warning")].filter(Boolean).join(", ") : "No problems.");
    setAttr(this.verdict, "class", `verdict ${ok ? (diagnostics.length ? "warn" : "good") : "bad"}`);
    this.start.disabled = !ok;
    this.problems.replaceChildren(...diagnostics.map((each) =>
      h("li", { class: each.severity },
        h("button", { class: "place", click: () => this.pane.show(each) }, `${each.line}:${each.column}`),
        h("span", {}, h("span", { class: "unseen" }, `${each.severity}: `), each.message, each.hint ? h("span", { class: "hint" }, ` ${each.hint}`) : null),
        each.fix ? h("button", { click: () => this.pane.apply(each) }, `Write ${each.fix.text}`) : null,
        this.declareButton(each))));
  }

  /** Show a field for the address of each SERVICE. */
  private drawServices(): void {
    keyed(this.services, this.outline?.services ?? [], (iri) => iri, (iri) => {
      const url = h("input", { type: "url", value: this.draft.services[iri] ?? "", placeholder: "http://localhost:7878/query", input: () => { this.draft.services[iri] = url.value; this.save(); }, change: () => this.recheck() });
      return field(`SERVICE ${iri}`, url, "The SPARQL endpoint that answers it; the server must allow it (--allow).");
    }, () => undefined);
  }

  /** Return a button that declares the stream that a warning is about. */
  private declareButton({ message }: Diagnostic): HTMLElement | null {
    const known = new Set(store.streams.map((each) => each.iri));
    const iri = (this.outline?.streams ?? []).find((each) => !known.has(each) && message.includes(`<${each}>`));
    return iri === undefined ? null : h("button", { click: () => void this.declare(iri) }, "Declare it");
  }

  private async declare(iri: string): Promise<void> {
    const local = (iri.split(/[/#:]/).at(-1) ?? "").replace(/[^A-Za-z0-9_.-]/g, "");
    try {
      await post("/streams", { name: /^[A-Za-z]/.test(local) ? local : `stream-${local}`, iri });
      say(`${local} is declared: push elements to it`);
      await store.refresh();
      this.recheck();
    } catch (error) {
      say(told(error), true);
    }
  }

  private recheck(): void {
    this.save();
    this.pane.check();
  }

  private addOption(name: string): void {
    if (this.draft.options.some(([known]) => known === name)) return;
    const known = this.optionNamed(name);
    const first = known?.default;
    this.draft.options.push([name, typeof first === "boolean" ? "true" : first === null || Array.isArray(first) ? "" : String(first)]);
    this.drawOptions();
    this.recheck();
    (this.options.lastElementChild?.querySelector("select, input") as HTMLElement | null)?.focus();
  }

  private drawOptions(): void {
    this.options.replaceChildren(...this.draft.options.map((pair) => {
      const [name, text] = pair;
      const known = this.optionNamed(name);
      const choices = name === "policy" ? this.words.policies.map((each) => [each.name, `${each.name}: ${each.summary}`] as const)
        : typeof known?.default === "boolean" ? ([["true", "true"], ["false", "false"]] as const)
        : (known?.choices ?? []).map((each) => [each, each] as const);
      const changed = (value: string): void => { pair[1] = value; this.recheck(); };
      const control = choices.length
        ? h("select", { change: () => changed(control.value) }, ...choices.map(([value, title]) => h("option", { value }, title)))
        : h("input", { value: text, change: () => changed(control.value) });
      control.value = text || (choices[0]?.[0] ?? "");
      pair[1] = control.value;
      const without = h("button", { "aria-label": `Remove ${name}`, click: () => { this.draft.options = this.draft.options.filter((each) => each !== pair); this.drawOptions(); this.recheck(); } }, "Remove");
      return h("li", {}, field(name, control, known?.help), without);
    }));
  }

  private async register(): Promise<void> {
    this.start.disabled = true;
    const { name, group, start } = this.draft;
    try {
      const body = { text: this.pane.text(), start, ...this.bindings(), ...(name ? { name } : {}), ...(group ? { group } : {}) };
      const query = await post<Query>("/queries", body);
      await store.refresh();
      say(`${query.name} is started`);
      this.go(`#/ranking/${encodeURIComponent(query.name)}`);
    } catch (error) {
      say(told(error), true);
      setText(this.verdict, told(error));
      setAttr(this.verdict, "class", "verdict bad");
      if (error instanceof Problem && error.diagnostics.length) this.showProblems({ ok: false, diagnostics: error.diagnostics, query: null });
    } finally {
      this.start.disabled = false;
    }
  }
}

/** Return the text of a query, with its options and the addresses of its services. */
function draftOf(query: Query): Draft {
  const options = Object.entries(query.options).map(([name, value]): [string, string] => [name, Array.isArray(value) ? value.join(", ") : String(value)]);
  const services = Object.fromEntries(query.services.flatMap(({ service, url }) => (url === null ? [] : [[service, url]])));
  return { ...FRESH, text: query.text, options, services };
}

function groups(options: Option[]): HTMLElement[] {
  const titles = [...new Set(options.map((each) => each.title))];
  return titles.map((title) => h("optgroup", { label: title }, ...options.filter((each) => each.title === title).map((each) => h("option", { value: each.name }, each.name))));
}

/** Return the value of an option as JSON has it. */
function valueOf(option: Option | undefined, text: string): unknown {
  if (option === undefined) return text;
  if (typeof option.default === "boolean") return text === "true";
  if (Array.isArray(option.default)) return text.split(/\s*,\s*/).filter(Boolean);
  if (/^-?\d+$/.test(text)) return Number(text);
  return text;
}
