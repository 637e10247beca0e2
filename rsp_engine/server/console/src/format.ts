// Terms, times and numbers as people read them.
import type { Query, Row, Term } from "./api";

const LONGEST = 120;
const XSD = "http://www.w3.org/2001/XMLSchema#";
const MEASURES = new Set(
  "integer decimal double float boolean date dateTime time duration dayTimeDuration yearMonthDuration gYear gYearMonth long int short byte nonNegativeInteger positiveInteger unsignedInt unsignedLong"
    .split(" ")
    .map((name) => XSD + name),
);

/** Return a text cut to a length that fits a row. */
export function cut(text: string, longest = LONGEST): string {
  return text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;
}

/** Return an IRI as a prefixed name, where a prefix of the query fits. */
export function compact(iri: string, prefixes: Record<string, string>): string {
  let best = "", name = "";
  for (const [prefix, base] of Object.entries(prefixes)) {
    if (base.length > best.length && iri.startsWith(base)) [best, name] = [base, prefix];
  }
  const local = iri.slice(best.length);
  return best && /^[\w.\-/]*$/.test(local) ? `${name}:${local}` : iri;
}

/** Return a term as a row shows it: short. */
export function shown(term: Term, prefixes: Record<string, string>): string {
  if (term.type === "uri") return compact(String(term.value), prefixes);
  if (term.type === "bnode") return `_:${String(term.value)}`;
  if (term.type === "triple") return JSON.stringify(term.value);
  return String(term.value);
}

/** Return a term as it is written, whole. */
export function written(term: Term): string {
  if (term.type === "uri") return `<${String(term.value)}>`;
  if (term.type === "bnode") return `_:${String(term.value)}`;
  if (term.type === "triple") return JSON.stringify(term.value);
  const text = JSON.stringify(String(term.value));
  if (term["xml:lang"]) return `${text}@${term["xml:lang"]}`;
  return term.datatype ? `${text}^^<${term.datatype}>` : text;
}

const isMeasure = (term: Term): boolean => term.type === "literal" && MEASURES.has(term.datatype ?? "");

/** Return the variables that name the object of a row: those without a number or a time. */
export function naming(row: Row): string[] {
  const names = Object.keys(row.bindings);
  const found = names.filter((name) => !isMeasure(row.bindings[name]!));
  return found.length ? found : names;
}

/** Return what identifies the object of a row from window to window. */
export function identity(row: Row): string {
  let known = identities.get(row);
  if (known === undefined) {
    known = naming(row).map((name) => `${name}=${written(row.bindings[name]!)}`).join("\n");
    identities.set(row, known);
  }
  return known;
}

const identities = new WeakMap<Row, string>();

/** Return the name of the object of a row. */
export function label(row: Row, query: Query): string {
  const [first] = naming(row);
  return first === undefined ? "(no value)" : shown(row.bindings[first]!, query.prefixes);
}

export function scoreOf(row: Row): number | null {
  const score = row.score;
  if (score === "INF") return Infinity;
  if (score === "-INF") return -Infinity;
  return typeof score === "number" ? score : null;
}

/** Return a number with some four significant digits. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "NaN";
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e9)) return value.toExponential(2);
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.max(Math.abs(value), 1))));
  return value.toLocaleString("en", { maximumFractionDigits: digits }).replace("-", "−");
}

export const count = (value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : value.toLocaleString("en");

export function rate(value: number): string {
  return `${value >= 100 ? count(Math.round(value)) : number(Math.round(value * 10) / 10)}/s`;
}

/** Return an instant of event time, in UTC; the date only where it is not today. */
export function time(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  const text = iso(ms);
  if (text === null) return `${ms} ms`;
  const [date, clock] = [text.slice(0, 10), text.slice(11, ms % 1000 ? 23 : 19)];
  const today = new Date().toISOString().slice(0, 10);
  return date === today || date === "1970-01-01" ? clock : `${date} ${clock}`;
}

export function iso(ms: number): string | null {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** Return a span of time with one unit. */
export function span(ms: number): string {
  const s = Math.abs(ms) / 1000, sign = ms < 0 ? "−" : "";
  if (s < 1) return `${sign}${Math.round(Math.abs(ms))} ms`;
  if (s < 120) return `${sign}${number(Math.round(s * 10) / 10)} s`;
  if (s < 7200) return `${sign}${Math.round(s / 60)} min`;
  if (s < 172800) return `${sign}${Math.round(s / 3600)} h`;
  return `${sign}${count(Math.round(s / 86400))} d`;
}

export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  if (value < 1e6) return `${number(Math.round(value / 100) / 10)} KB`;
  return `${number(Math.round(value / 1e5) / 10)} MB`;
}

/** Return the step of heat of an age, 0 to 4: in terms of the length of the window. */
export function heat(age: number, length: number): number {
  const share = age / Math.max(length, 1);
  return age <= 0 ? 0 : share <= 0.5 ? 1 : share <= 1 ? 2 : share <= 4 ? 3 : 4;
}
