// The public HTTP API of the service, and its types.

export interface Fix { start: number; end: number; text: string }
export interface Diagnostic {
  severity: "error" | "warning";
  kind: string;
  message: string;
  hint: string | null;
  line: number;
  column: number;
  start: number;
  end: number;
  fix: Fix | null;
}
export interface Outline {
  name: string | null;
  form: string;
  prefixes: Record<string, string>;
  streams: string[];
  windows: string[];
  services: string[];
}
export interface Validation { ok: boolean; diagnostics: Diagnostic[]; query: Outline | null }
export interface Box { name: string; kind: string; title: string; lines: string[] }
export interface PlanPart { title: string; boxes: Box[]; arrows: { start: string; end: string }[] }
export interface PlanGraph { query: string; parts: PlanPart[] }
export interface Option { name: string; title: string; help: string; default: unknown; choices: string[] }
export interface Vocabulary {
  keywords: string[];
  functions: string[];
  policies: { name: string; summary: string }[];
  operators: string[];
  options: Option[];
}
export interface Term { type: "uri" | "literal" | "bnode" | "triple"; value: unknown; datatype?: string; "xml:lang"?: string }
export interface Row { rank?: number | null; score?: number | string | null; age?: number; bindings: Record<string, Term> }
export interface Elected {
  service: string;
  /** The terms of the key, by variable, as SPARQL writes them. */
  key: Record<string, string>;
  value: number | null;
  outcome: string;
}
export interface Stats {
  budget_spent?: number;
  cold_misses?: number;
  stale?: number;
  unanswered?: number;
  requests?: number;
  exact?: boolean;
  ndcg?: number;
  precision?: number;
  faults?: Record<string, number>;
  elected?: Elected[];
}
export interface Answer {
  id: number;
  query: string;
  window: { open: number; close: number };
  rows?: Row[];
  graph?: string;
  boolean?: boolean | null;
  stats: Stats;
}
export interface QueryStatus {
  windows: number;
  rows: number;
  exact: number;
  budget_spent: number;
  requests: number;
  cold_misses: number;
  stale: number;
  elements: number;
  late: number;
  dead_letters: Record<string, number>;
  watermark: number | null;
  lag: number | null;
  rate: number;
  answer_rate: number;
  last_window: { open: number; close: number } | null;
  last_exact: boolean | null;
  refreshed: Record<string, Record<string, number>>;
  restarts: number;
}
export interface Query {
  name: string;
  iri: string;
  text: string;
  form: string;
  operator: string;
  ranked: boolean;
  limit: number | null;
  variables: string[];
  prefixes: Record<string, string>;
  options: Record<string, unknown>;
  services: { service: string; url: string | null; policy: string; budget: number | null }[];
  windows: { name: string; stream: string; size: string }[];
  streams: string[];
  created: number;
  state: string;
  reason: string | null;
  answers: { first: number | null; last: number | null; bytes: number };
  status: QueryStatus;
}
export interface Stream {
  name: string;
  iri: string;
  kind: string;
  source: string;
  rate: number;
  elements: number | null;
  messages: number | null;
  repeated: number | null;
  unreadable: number | null;
  watermark: number | null;
  lag: number | null;
  log: { first: number; last: number; bytes: number } | null;
  late: number;
  dead_letters: number;
  readers: string[];
  connected: boolean | null;
  trouble: string | null;
}
export interface Element_ {
  number: number;
  arrival: number;
  bytes: number;
  payload: string;
  timestamps: number[];
  triples: number;
  reason: string | null;
}
export interface Letter {
  number: number;
  arrival: number | null;
  kind: string;
  reason: string;
  bytes: number;
  payload: string;
  query: string | null;
}

/** A refused request: what the problem document says. */
export class Problem extends Error {
  constructor(readonly status: number, message: string, readonly hint: string | null, readonly diagnostics: Diagnostic[]) {
    super(message);
  }
}

let askForToken: () => Promise<void> = () => Promise.resolve();

/** Set what asks the person for the token of the server. */
export function onTokenNeeded(ask: () => Promise<void>): void {
  askForToken = ask;
}

/** Send a request; ask for the token where the server needs one. Throws `Problem`. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  for (;;) {
    const response = await fetch(path, { ...init, credentials: "same-origin" });
    if (response.status === 401) {
      await askForToken();
      continue;
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    const body = await response.json();
    return new Problem(response.status, body.detail ?? response.statusText, body.hint ?? null, body.diagnostics ?? []);
  } catch {
    return new Problem(response.status, response.statusText || `status ${response.status}`, null, []);
  }
}

export async function get<T>(path: string): Promise<T> {
  return (await request(path)).json();
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await request(path, signal ? { ...init, signal } : init);
  return response.status === 204 ? (undefined as T) : response.json();
}

export async function remove(path: string): Promise<void> {
  await request(path, { method: "DELETE" });
}

export const pathOf = (kind: "queries" | "streams", name: string): string => `/${kind}/${encodeURIComponent(name)}`;

/** Return what went wrong as a sentence, with the hint. */
export function told(error: unknown): string {
  if (error instanceof Problem) return error.hint ? `${error.message}: ${error.hint}` : error.message;
  return "the server does not answer";
}

export interface ServerEvent { event: string; id: string | null; data: string }

/** Yield the events of a stream of server-sent events. */
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const from = Math.max(rest.length - 3, 0);
    rest += value;
    if (rest.indexOf("\n\n", from) < 0 && rest.indexOf("\r\n\r\n", from) < 0) continue;
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = parsed(block);
      if (event !== null) yield event;
    }
  }
}

function parsed(block: string): ServerEvent | null {
  const data: string[] = [];
  let event = "message", id: string | null = null;
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon === 0 || line === "") continue;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (name === "event") event = value;
    else if (name === "id") id = value;
    else if (name === "data") data.push(value);
  }
  return data.length ? { event, id, data: data.join("\n") } : null;
}
