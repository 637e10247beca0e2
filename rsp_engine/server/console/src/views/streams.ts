// The streams: rates, watermarks, what came late or could not be read, and the last elements.
import { get, pathOf, post, remove, request, told, type Element_, type Letter, type Stream } from "../api";
import { sparkline } from "../charts";
import { confirmed, h, keyed, setAttr, setText } from "../dom";
import { bytes, count, cut, iso, rate, span, time } from "../format";
import { empty, field, link, say, type View } from "../parts";
import { store } from "../store";
import { whole } from "./ranking";

const PERIOD_MS = 2000;
const FAR_MS = 31536e6;

export function streamsView(name: string | null, go: (path: string) => void): View {
  const body = h("tbody");
  const heads = ["Stream", "Rate", "Elements", "Watermark", "Lag", "Late", "Dead letters"];
  const table = h("table", { class: "list" }, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), body);
  const nothing = empty("No stream is declared.");
  const detail = name === null ? null : new Detail(name, go);
  const element = h("section", { "aria-labelledby": "title" }, h("div", { class: "head" }, h("h1", { id: "title" }, "Streams")), table, nothing, detail?.element ?? null, declaring());
  const update = (): void => {
    table.hidden = store.streams.length === 0;
    nothing.hidden = store.streams.length > 0 || store.isUp === null;
    keyed(body, store.streams, (stream) => stream.name, (stream) => created(stream), (row, stream) => {
      rows.get(row)!(stream);
      setAttr(row, "aria-current", stream.name === name ? "true" : null);
    });
    detail?.update();
  };
  update();
  const stop = store.listen(update);
  return { element, close: () => { stop(); detail?.close(); } };
}

const rows = new WeakMap<HTMLElement, (stream: Stream) => void>();

function created({ name, iri }: Stream): HTMLElement {
  const spark = sparkline();
  const speed = h("span", { class: "figure" }), trouble = h("div", { class: "reason" });
  const [elements, watermark, lag, late, letters] = [0, 1, 2, 3, 4].map(() => h("span", { class: "figure" })) as [HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement];
  const cell = (title: string, ...children: Node[]): HTMLElement => h("td", { "data-label": title }, h("div", {}, ...children));
  const row = h("tr", { "data-stream": name },
    h("th", { scope: "row" }, link(name, `#/streams/${encodeURIComponent(name)}`, "name"), h("div", { class: "small" }, h("bdi", {}, cut(iri, 80))), trouble),
    cell("Rate", spark.element, speed), cell("Elements", elements), cell("Watermark", watermark), cell("Lag", lag), cell("Late", late), cell("Dead letters", letters));
  rows.set(row, (stream) => {
    setText(speed, rate(stream.rate));
    spark.draw(store.rates.get(`stream ${name}`) ?? []);
    setText(elements, count(stream.elements));
    setText(watermark, time(stream.watermark));
    setAttr(watermark, "title", stream.watermark === null ? null : iso(stream.watermark));
    setText(lag, stream.lag === null ? "–" : Math.abs(stream.lag) < FAR_MS ? span(stream.lag) : "not live");
    setText(late, count(stream.late));
    setText(letters, count(stream.dead_letters));
    setAttr(letters, "class", stream.dead_letters ? "figure bad" : "figure");
    setText(trouble, stream.trouble ?? "");
  });
  return row;
}

/** The last elements and dead letters of a stream, and a way to push some. */
class Detail {
  readonly element: HTMLElement;
  private readonly facts = h("p", { class: "small" });
  private readonly letters = h("ul", { class: "messages" });
  private readonly elements = h("ul", { class: "messages" });
  private readonly lettersNote = h("p", { class: "small" });
  private readonly elementsNote = h("p", { class: "small" });
  private readonly pushing: HTMLElement;
  private asked = 0;
  private isClosed = false;
  private seen = "";

  constructor(private readonly name: string, private readonly go: (path: string) => void) {
    const text = h("textarea", { rows: 4, spellcheck: "false", placeholder: '{"timestamp": 1000, "graph": "<urn:hall> <http://example.org/temperature> 20 ."}' });
    const push = h("button", { class: "primary", click: () => void this.push(text.value) }, "Push");
    this.pushing = h("details", {}, h("summary", {}, "Push elements"), field("Elements, a line of JSON each", text), push);
    const drop = h("button", { class: "danger", click: () => void this.drop() }, "Delete the stream");
    this.element = h("div", { class: "detail", "data-detail": name },
      h("div", { class: "row" }, h("h2", {}, cut(name, 80)), h("span", { class: "space" }), drop), this.facts, this.pushing,
      h("div", { class: "columns two" },
        h("div", {}, h("h3", {}, "Last elements"), this.elementsNote, this.elements),
        h("div", {}, h("h3", {}, "Dead letters"), this.lettersNote, this.letters)));
  }

  close(): void {
    this.isClosed = true;
  }

  update(): void {
    const stream = store.stream(this.name);
    if (stream === undefined) {
      setText(this.facts, store.isUp ? "There is no such stream." : "");
      return;
    }
    this.pushing.hidden = stream.kind !== "push";
    const log = stream.log === null ? "its log is elsewhere" : `${bytes(stream.log.bytes)} kept, elements ${count(stream.log.first)} to ${count(stream.log.last)}`;
    const readers = stream.readers.length ? `read by ${stream.readers.join(", ")}` : "read by no query";
    setText(this.facts, `${stream.kind === "push" ? "pushed to this server" : cut(stream.source, 120)} · ${log} · ${readers}${stream.repeated ? ` · ${count(stream.repeated)} repeated` : ""}`);
    const now = JSON.stringify([stream.log?.last, stream.dead_letters, stream.late]);
    if (now === this.seen || Date.now() < this.asked + PERIOD_MS) return;
    this.seen = now;
    this.asked = Date.now();
    void this.load(stream);
  }

  private async load(stream: Stream): Promise<void> {
    const path = pathOf("streams", this.name);
    try {
      const { dead_letters: letters } = await get<{ dead_letters: Letter[] }>(`${path}/dead-letters?last=20`);
      const elements = stream.log === null ? [] : (await get<{ elements: Element_[] }>(`${path}/elements?last=20`)).elements;
      if (this.isClosed) return;
      setText(this.elementsNote, elements.length ? "" : stream.log === null ? "Queries read its source themselves." : "None yet.");
      setText(this.lettersNote, letters.length ? "" : "None.");
      keyed(this.elements, elements.reverse(), (each) => String(each.number), elementLine, () => undefined);
      keyed(this.letters, letters.reverse(), (each) => `${each.number} ${each.kind} ${each.arrival} ${each.query}`, letterLine, () => undefined);
    } catch (error) {
      setText(this.lettersNote, told(error));
    }
  }

  private async push(text: string): Promise<void> {
    try {
      const headers = { "Content-Type": "application/x-ndjson" };
      const response = await request(`${pathOf("streams", this.name)}/elements`, { method: "POST", headers, body: text });
      const taken = await response.json();
      say(`${count(taken.accepted)} accepted, ${count(taken.repeated)} repeated`);
      await store.refresh();
    } catch (error) {
      say(told(error), true);
    }
  }

  private async drop(): Promise<void> {
    if (!(await confirmed(`Delete the stream ${this.name} with its elements?`, "Delete"))) return;
    try {
      await remove(pathOf("streams", this.name));
      await store.refresh();
      this.go("#/streams");
    } catch (error) {
      say(told(error), true);
    }
  }
}

function elementLine(element: Element_): HTMLElement {
  const times = element.timestamps.map((at) => time(at));
  const head = [`#${count(element.number)}`, cut(times.join(", "), 60), `${count(element.triples)} ${element.triples === 1 ? "triple" : "triples"}`, bytes(element.bytes)].filter(Boolean);
  return h("li", {}, h("div", { class: "small" }, head.join(" · ")), element.reason ? h("div", { class: "reason" }, element.reason) : null, h("div", { class: "payload" }, whole(element.payload)));
}

function letterLine(letter: Letter): HTMLElement {
  const head = [`#${count(letter.number)}`, letter.kind, bytes(letter.bytes), letter.query === null ? "" : `of ${letter.query}`].filter(Boolean);
  return h("li", {}, h("div", { class: "small" }, head.join(" · ")), h("div", { class: "reason" }, letter.reason), h("div", { class: "payload" }, whole(letter.payload)));
}

function declaring(): HTMLElement {
  const name = h("input", { required: true, maxlength: 64, pattern: "[A-Za-z][A-Za-z0-9_.\\-]*", placeholder: "readings" });
  const iri = h("input", { required: true, placeholder: "http://example.org/readings" });
  const source = h("input", { placeholder: "push" });
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await post("/streams", { name: name.value, iri: iri.value, ...(source.value ? { source: source.value } : {}) });
      say(`${name.value} is declared`);
      await store.refresh();
      form.reset();
    } catch (error) {
      say(told(error), true);
    }
  };
  const form = h("form", { class: "fields", submit: (event) => void submit(event) },
    field("Name", name), field("IRI", iri), field("Source", source, "Elements are pushed to this server, unless a broker or a file is named."),
    h("div", { class: "row" }, h("button", { class: "primary" }, "Declare")));
  return h("details", { class: "declare" }, h("summary", {}, "Declare a stream"), form);
}
