// What the console knows of the service: polled once a second, while the page is visible.
import { get, type Query, type Stream } from "./api";

const PERIOD_MS = 1000;
const SAMPLES = 60;

class Store {
  queries: Query[] = [];
  streams: Stream[] = [];
  isUp: boolean | null = null;
  /** The last rates, by `query NAME` and `stream NAME`. */
  readonly rates = new Map<string, number[]>();
  private listeners = new Set<() => void>();

  listen(call: () => void): () => void {
    this.listeners.add(call);
    return () => this.listeners.delete(call);
  }

  query(name: string): Query | undefined {
    return this.queries.find((each) => each.name === name);
  }

  stream(name: string): Stream | undefined {
    return this.streams.find((each) => each.name === name);
  }

  /** Ask the service for its state, and tell the views. */
  async refresh(): Promise<void> {
    try {
      const [queries, streams] = await Promise.all([
        get<{ queries: Query[] }>("/queries"),
        get<{ streams: Stream[] }>("/streams"),
      ]);
      this.queries = queries.queries.sort((a, b) => a.created - b.created || (a.name < b.name ? -1 : 1));
      this.streams = streams.streams;
      this.isUp = true;
    } catch {
      this.isUp = false;
    }
    for (const call of [...this.listeners]) call();
  }

  private sample(): void {
    for (const query of this.queries) this.note(`query ${query.name}`, query.status.rate);
    for (const stream of this.streams) this.note(`stream ${stream.name}`, stream.rate);
  }

  private note(key: string, rate: number): void {
    const known = this.rates.get(key) ?? [];
    known.push(rate);
    if (known.length > SAMPLES) known.shift();
    this.rates.set(key, known);
  }

  /** Poll for ever. */
  async run(): Promise<void> {
    for (;;) {
      if (document.visibilityState === "visible") {
        await this.refresh();
        if (this.isUp) this.sample();
      }
      await new Promise((resolve) => setTimeout(resolve, PERIOD_MS));
    }
  }
}

export const store = new Store();
