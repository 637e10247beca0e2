// What may stand at the cursor: keywords, prefixes, streams, windows, variables.
import type { Completion, CompletionContext, CompletionResult, CompletionSource } from "@codemirror/autocomplete";
import type { Vocabulary } from "../api";
import { compact } from "../format";
import { store } from "../store";

const NAMESPACES: Record<string, string> = {
  foaf: "http://xmlns.com/foaf/0.1/",
  geo: "http://www.w3.org/2003/01/geo/wgs84_pos#",
  owl: "http://www.w3.org/2002/07/owl#",
  prov: "http://www.w3.org/ns/prov#",
  rdf: "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
  rdfs: "http://www.w3.org/2000/01/rdf-schema#",
  saref: "https://saref.etsi.org/core/",
  schema: "https://schema.org/",
  skos: "http://www.w3.org/2004/02/skos/core#",
  sosa: "http://www.w3.org/ns/sosa/",
  ssn: "http://www.w3.org/ns/ssn/",
  xsd: "http://www.w3.org/2001/XMLSchema#",
};

/** Return the prefixes that a text declares. */
export function prefixesOf(text: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [, name, iri] of text.matchAll(/PREFIX\s+([\w.-]*):\s*<([^>]*)>/gi)) found[name!] = iri!;
  return found;
}

export function completions(vocabulary: Vocabulary): CompletionSource {
  const words: Completion[] = [
    ...vocabulary.keywords.map((label) => ({ label, type: "keyword" })),
    ...vocabulary.functions.map((label) => ({ label, type: "function", apply: `${label}(` })),
  ];
  return (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/[\p{L}\p{N}_?$:<.-]*/u)!;
    const before = context.state.sliceDoc(Math.max(0, word.from - 60), word.from);
    const text = context.state.doc.toString();
    const result = (options: Completion[]): CompletionResult | null =>
      options.length ? { from: word.from, options, validFor: /^[\p{L}\p{N}_?$:<.-]*$/u } : null;
    if (/\bON\s+(?:STREAM\s+)?$/i.test(before)) return result(streams(text));
    if (/\bWINDOW\s+$/i.test(before) && !/\bNAMED\s+WINDOW\s+$/i.test(before)) return result(windows(text));
    if (/\bPREFIX\s+$/i.test(before)) return result(namespaces());
    if (word.text.startsWith("?") || word.text.startsWith("$")) return result(variables(text, word.text));
    if (word.from === word.to && !context.explicit) return null;
    const prefixes = Object.keys(prefixesOf(text)).map((name) => ({ label: `${name}:`, type: "namespace" }));
    return result([...words, ...prefixes, ...windows(text), ...(context.explicit ? streams(text) : [])]);
  };
}

function streams(text: string): Completion[] {
  const prefixes = prefixesOf(text);
  return store.streams.map(({ iri, name }) => {
    const short = compact(iri, prefixes);
    return { label: short === iri ? `<${iri}>` : short, type: "class", detail: `stream ${name}` };
  });
}

function windows(text: string): Completion[] {
  const names = [...text.matchAll(/\bNAMED\s+WINDOW\s+(\S+)\s+ON\b/gi)].map((found) => found[1]!);
  return [...new Set(names)].map((label) => ({ label, type: "class", detail: "window" }));
}

function namespaces(): Completion[] {
  return Object.entries(NAMESPACES).map(([name, iri]) => ({ label: `${name}:`, type: "namespace", detail: iri, apply: `${name}: <${iri}>` }));
}

function variables(text: string, now: string): Completion[] {
  const names = [...text.matchAll(/[?$][\p{L}\p{N}_]+/gu)].map((found) => found[0]);
  return [...new Set(names)].filter((name) => name !== now).map((label) => ({ label, type: "variable" }));
}
