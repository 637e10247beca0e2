// The answers of a query as they come. A feed goes on after the last id that it has seen, so that a
// server that was away loses nothing.
import { events, pathOf, Problem, request, type Answer } from "./api";
import { store } from "./store";

const KEPT = 300;
/** A page that nobody sees for so long frees its connection: a browser has six to a server. */
const UNSEEN_MS = 20_000;
const MOST_CHARACTERS = 32e6;

export type FeedStatus = "connecting" | "live" | "reconnecting" | "deleted";

export class Feed {
  answers: Answer[] = [];
  status: FeedStatus = "connecting";
  missed = 0;
  private last: number | null = null;
  private sizes: number[] = [];
  private size = 0;
  private listeners = new Set<() => void>();
  private stopper: AbortController | null = null;
  private planned = 0;

  constructor(readonly name: string, readonly created: number) {}

  /** Call a function, at most once a frame, when answers or the status have changed. */
  listen(call: () => void): () => void {
    this.listeners.add(call);
    if (this.stopper === null) void this.run();
    return () => {
      this.listeners.delete(call);
      if (this.listeners.size === 0) this.stop();
    };
  }

  private stop(): void {
    this.stopper?.abort();
    this.stopper = null;
  }

  private tell(): void {
    if (this.planned) return;
    this.planned = requestAnimationFrame(() => {
      this.planned = 0;
      for (const call of [...this.listeners]) call();
    });
  }

  private setStatus(status: FeedStatus): void {
    if (this.status === status) return;
    this.status = status;
    this.tell();
  }

  private async run(): Promise<void> {
    const stopper = (this.stopper = new AbortController());
    let pause = 200;
    while (!stopper.signal.aborted) {
      await seen();
      const connection = new AbortController();
      const close = (): void => connection.abort();
      const unwatch = whenUnseen(close);
      stopper.signal.addEventListener("abort", close);
      // Of what was missed, no more than is kept is asked for.
      const end = store.query(this.name)?.answers.last ?? 0;
      if (this.last !== null && end > this.last + KEPT) [this.last, this.answers, this.sizes, this.size] = [null, [], [], 0];
      try {
        const headers: Record<string, string> = { Accept: "text/event-stream" };
        if (this.last !== null) headers["Last-Event-ID"] = String(this.last);
        const path = `${pathOf("queries", this.name)}/answers?last=${KEPT}`;
        const response = await request(path, { headers, signal: connection.signal, cache: "no-store" });
        this.setStatus("live");
        pause = 200;
        for await (const event of events(response.body!)) {
          if (stopper.signal.aborted) return;
          if (!this.take(event.event, event.id, event.data)) return;
        }
      } catch (error) {
        if (stopper.signal.aborted) return;
        if (error instanceof Problem && error.status === 404) return this.setStatus("deleted");
      } finally {
        unwatch();
        stopper.signal.removeEventListener("abort", close);
      }
      this.setStatus("reconnecting");
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, 3000);
    }
  }

  /** Take an event; return whether more may come. */
  private take(event: string, id: string | null, data: string): boolean {
    if (event === "answer" && id !== null) {
      const number = Number(id);
      if (this.last !== null && number <= this.last) return true;
      this.last = number;
      this.answers.push({ ...(JSON.parse(data) as Answer), id: number });
      this.sizes.push(data.length);
      this.size += data.length;
      while (this.answers.length > KEPT || (this.size > MOST_CHARACTERS && this.answers.length > 1)) {
        this.answers.shift();
        this.size -= this.sizes.shift()!;
      }
      this.tell();
    } else if (event === "gap") {
      const [first, last] = JSON.parse(data).missed as [number, number];
      this.missed += last - first + 1;
    } else if (event === "state" && JSON.parse(data).state === "deleted") {
      this.setStatus("deleted");
      return false;
    }
    return true;
  }
}

/** Wait until the page is seen. */
function seen(): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.visibilityState !== "visible") return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    look();
  });
}

/** Call a function once the page has not been seen for a while; return what ends the watch. */
function whenUnseen(call: () => void): () => void {
  let timer = 0;
  const look = (): void => {
    clearTimeout(timer);
    if (document.visibilityState !== "visible") timer = setTimeout(call, UNSEEN_MS);
  };
  document.addEventListener("visibilitychange", look);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

const feeds = new Map<string, Feed>();

/** Return the feed of a query: one for all views. */
export function feedOf(name: string, created: number): Feed {
  const known = feeds.get(name);
  if (known !== undefined && known.created === created && known.status !== "deleted") return known;
  const feed = new Feed(name, created);
  feeds.set(name, feed);
  return feed;
}
