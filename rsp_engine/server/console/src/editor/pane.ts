// The text of a query, with what is wrong in it. The editor is in a shadow tree, where its styles are
// constructed sheets, which a strict policy for content allows.
import { autocompletion } from "@codemirror/autocomplete";
import { linter, type Diagnostic as Mark } from "@codemirror/lint";
import { EditorState, StateEffect, type Transaction } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { basicSetup } from "codemirror";
import type { Diagnostic, Validation, Vocabulary } from "../api";
import { h } from "../dom";
import { completions } from "./completion";
import { rspql } from "./language";

const theme = EditorView.theme({
  "&": { height: "100%", fontSize: "14px", color: "var(--text)", backgroundColor: "var(--surface)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--muted)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selection)", outline: "none" },
  ".cm-lintRange": { backgroundImage: "none !important" },
  ".cm-lintRange-error": { textDecoration: "underline wavy var(--bad) 1.5px", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { textDecoration: "underline dotted var(--warn) 2px", textUnderlineOffset: "3px" },
  ".cm-lintPoint:after": { borderBottomColor: "var(--bad)" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "6px", boxShadow: "var(--shadow)", maxWidth: "min(520px, 90vw)" },
  ".cm-tooltip-lint": { padding: "0", marginTop: "4px" },
  ".cm-diagnostic": { padding: "6px 10px", fontFamily: "system-ui, sans-serif", fontSize: "13px", borderLeftWidth: "3px" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
  ".cm-diagnosticAction": { backgroundColor: "var(--accent)", color: "var(--on-accent)", borderRadius: "4px", padding: "2px 8px", font: "inherit", cursor: "pointer", margin: "6px 0 0 0" },
  ".hint": { color: "var(--muted)", marginTop: "2px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent) !important", color: "var(--on-accent) !important" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "13px" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.75" },
  ".cm-panels": { backgroundColor: "var(--bg)", color: "var(--text)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--hover)", border: "none", color: "var(--muted)" },
});

/** Replace a selection that is typed over. Chromium would write an inline style, which is refused. */
function typeOver(event: InputEvent, view: EditorView): boolean {
  const { from, to, empty } = view.state.selection.main;
  const text = event.data;
  if (event.inputType !== "insertText" || text === null || empty || view.composing) return false;
  event.preventDefault();
  const typed = (): Transaction => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
  const handlers = view.state.facet(EditorView.inputHandler);
  if (!handlers.some((handle) => handle(view, from, to, text, typed))) view.dispatch(typed());
  return true;
}

/** Check the text again: what it is checked with has changed. */
const again = StateEffect.define<null>();

export interface Pane {
  element: HTMLElement;
  text: () => string;
  setText: (text: string) => void;
  apply: (diagnostic: Diagnostic) => void;
  show: (diagnostic: Diagnostic) => void;
  focus: () => void;
  check: () => void;
}

/** Create an editor; `check` is called as the text changes, and `changed` at once. */
export function pane(start: string, vocabulary: Vocabulary, check: (text: string) => Promise<Validation | null>, changed: () => void): Pane {
  const element = h("div", { class: "pane" });
  const root = element.attachShadow({ mode: "open" });
  const lint = linter(async (view) => {
    const text = view.state.doc.toString();
    const found = await check(text);
    return found === null || text !== view.state.doc.toString() ? [] : found.diagnostics.map((each) => marked(each, view.state));
  }, { delay: 250, needsRefresh: (update) => update.transactions.some((each) => each.effects.some((effect) => effect.is(again))) });
  const extensions = [
    basicSetup,
    rspql(vocabulary),
    autocompletion({ override: [completions(vocabulary)] }),
    lint,
    theme,
    EditorView.lineWrapping,
    EditorView.domEventHandlers({ beforeinput: typeOver }),
    EditorView.contentAttributes.of({ "aria-label": "Text of the query", spellcheck: "false" }),
    EditorView.updateListener.of((update) => { if (update.docChanged) changed(); }),
  ];
  const view = new EditorView({ state: EditorState.create({ doc: start, extensions }), root, parent: root });
  return {
    element,
    text: () => view.state.doc.toString(),
    setText: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 } }),
    apply: (diagnostic) => { if (diagnostic.fix !== null) replace(view, diagnostic); view.focus(); },
    show: (diagnostic) => {
      const [from, to] = placeOf(diagnostic, view.state);
      view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
      view.focus();
    },
    focus: () => view.focus(),
    check: () => view.dispatch({ effects: again.of(null) }),
  };
}

function replace(view: EditorView, { fix }: Diagnostic): void {
  const length = view.state.doc.length;
  const { start, end, text } = fix!;
  view.dispatch({ changes: { from: Math.min(start, length), to: Math.min(end, length), insert: text } });
}

/** Return the place of a diagnostic in the text; one without length marks a character. */
function placeOf({ start, end }: Diagnostic, state: EditorState): [number, number] {
  const { length } = state.doc;
  let from = Math.min(start, length), to = Math.min(Math.max(end, start), length);
  if (from === to) {
    if (to < length && state.sliceDoc(to, to + 1) !== "\n") to += 1;
    else if (from > 0) from -= 1;
  }
  return [from, to];
}

function marked(diagnostic: Diagnostic, state: EditorState): Mark {
  const [from, to] = placeOf(diagnostic, state);
  const { severity, message, hint, fix } = diagnostic;
  return {
    from,
    to,
    severity,
    message: hint === null ? message : `${message}. ${hint}`,
    renderMessage: () => h("div", {}, message, hint === null ? null : h("div", { class: "hint" }, hint)),
    ...(fix === null ? {} : { actions: [{ name: `Write ${fix.text}`, apply: (view: EditorView) => replace(view, diagnostic) }] }),
  };
}
