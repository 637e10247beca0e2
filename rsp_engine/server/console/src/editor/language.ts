// The words of RSP-QL: those of the grammar, which the service lists.
import { HighlightStyle, LanguageSupport, StreamLanguage, type StringStream, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import type { Vocabulary } from "../api";

interface State { inside: string | null }

const VARIABLE = /^[?$][\p{L}\p{N}_]+/u;
const IRI = /^<[^<>"{}|^`\\\s]*>/;
const PREFIXED = /^(?:[\p{L}][\p{L}\p{N}_.-]*)?:[\p{L}\p{N}_:.%\\/-]*/u;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:ms|[smhd])?\b/;
const DURATION = /^PT?[0-9][0-9.DHMSTW]*\b/;
const WORD = /^[\p{L}_][\p{L}\p{N}_-]*/u;

/** Return the language with the words of a vocabulary. */
export function rspql(vocabulary: Vocabulary): LanguageSupport {
  const keywords = new Set(vocabulary.keywords);
  const functions = new Set(vocabulary.functions.map((name) => name.toUpperCase()));
  const language = StreamLanguage.define<State>({
    name: "rspql",
    startState: () => ({ inside: null }),
    token: (stream, state) => token(stream, state, keywords, functions),
    languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["{", "(", "[", '"', "<"] } },
    tokenTable: { iri: tags.url, prefixed: tags.namespace, fn: tags.function(tags.variableName) },
  });
  return new LanguageSupport(language, [syntaxHighlighting(style)]);
}

function token(stream: StringStream, state: State, keywords: Set<string>, functions: Set<string>): string | null {
  if (state.inside !== null) return text(stream, state);
  if (stream.eatSpace()) return null;
  const next = stream.peek();
  if (next === "#") {
    stream.skipToEnd();
    return "comment";
  }
  if (next === '"' || next === "'") {
    const long = next.repeat(3);
    state.inside = stream.match(long) ? long : (stream.next(), next);
    return text(stream, state);
  }
  if (stream.match(IRI)) return "iri";
  if (stream.match(VARIABLE)) return "variableName";
  if (stream.match(/^@[a-zA-Z-]+/)) return "string";
  if (stream.match(NUMBER) || stream.match(DURATION)) return "number";
  if (stream.match(PREFIXED)) return "prefixed";
  const word = stream.match(WORD) as RegExpMatchArray | null;
  if (word !== null) {
    const upper = word[0].toUpperCase();
    if (keywords.has(upper) || word[0] === "a" || upper === "TRUE" || upper === "FALSE") return "keyword";
    return functions.has(upper) ? "fn" : null;
  }
  stream.next();
  return null;
}

function text(stream: StringStream, state: State): string {
  const end = state.inside!;
  while (!stream.eol()) {
    if (stream.match(end)) {
      state.inside = null;
      return "string";
    }
    if (stream.next() === "\\") stream.next();
  }
  if (end.length === 1) state.inside = null;
  return "string";
}

const style = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: tags.function(tags.variableName), color: "var(--code-function)" },
  { tag: tags.variableName, color: "var(--code-variable)" },
  { tag: tags.url, color: "var(--code-iri)" },
  { tag: tags.namespace, color: "var(--code-iri)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
]);
