// RSP-JS: the windows and the query operator of the engine, over the triples of a file of N-Quads.
//
// `RSPEngine.register` emits rows without their window, and shifts its windows with each row. So
// the windows are subscribed to here, and the same operator is called for each.

import { createReadStream, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import N3 from "n3";
import rspjs from "rsp-js";

console.debug = console.log = () => {}; // the engine prints several lines for each triple

const task = JSON.parse(process.argv[2]);
const [, prefix, select, pattern, tail] = task.query.match(/^(PREFIX \S+ \S+) (.*?) \{ (.*) \} (.*)$/);
const engine = new rspjs.RSPEngine(`${prefix}
REGISTER RStream <q0> AS
${select}
FROM NAMED WINDOW :w ON STREAM :stream [RANGE ${1000 * task.range_s} STEP ${1000 * task.step_s}]
WHERE {
WINDOW :w { ${pattern} }
} ${tail}`);
const variables = [...select.matchAll(/\?(\w+)(?=[\s)]|$)/g)].map((match) => match[1]);
const [stream] = engine.streams.values();
const [window] = engine.windows;
const closed = [];
window.subscribe("RStream", (content) => closed.push(content));

const answers = [];
const step = 1000 * task.step_s;
async function answer(content) {
  const close = Math.ceil((content.last_time_changed() + 1) / step) * step;
  const rows = await (await engine.r2r.execute(content)).toArray();
  answers.push([close, rows.map((row) => variables.map((name) => row.get(name)?.value ?? null))]);
}

async function add(subject, predicate, object, time) {
  stream.add(N3.DataFactory.quad(subject, predicate, object), time);
  while (closed.length) await answer(closed.shift());
}

const parser = new N3.Parser({ format: "N-Quads" });
let time;
for await (const line of createInterface({ input: createReadStream(task.stream) })) {
  const [quad] = parser.parse(line);
  time = Number(quad.graph.value.match(/\d+$/)[0]);
  // Its windows include their left edge, those of RSP-QL the right one.
  await add(quad.subject, quad.predicate, quad.object, time - 1);
}
// A window is answered when a later triple arrives: these match nothing.
const end = N3.DataFactory.namedNode("urn:end");
time = Math.ceil(time / step) * step;
for (const last = time + 1000 * task.range_s; time < last; time += step) {
  await add(end, end, end, time + 1);
}
writeFileSync(task.output, answers.map((each) => JSON.stringify(each) + "\n").join(""));
