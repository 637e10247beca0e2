// RSP-JS over the elements of a case: prints a line for each window that it reports.
//
//   node rsp_js_case.mjs FOLDER CASE     FOLDER has its modules; CASE is JSON: query, elements
//
// `RSPEngine.register` emits rows without the window that they are of, so the window is subscribed to,
// and its content is answered by the operator of the engine.

import { createRequire } from "node:module";

const load = createRequire(`${process.argv[2]}/`);
const N3 = load("n3");
const { RSPEngine } = load("rsp-js");
const print = console.log;
console.debug = console.log = console.error = () => {}; // it prints several lines for each triple

const { query, elements } = JSON.parse(process.argv[3]);
const engine = new RSPEngine(query);
const [stream] = engine.streams.values();
const [window] = engine.windows;
const reported = [];
window.subscribe("RStream", (content) => {
  const [bounds] = [...window.active_windows].find(([, held]) => held === content);
  reported.push([bounds.open, bounds.close, content]);
});

for (const [time, turtle] of elements) {
  for (const quad of new N3.Parser().parse(turtle)) stream.add(quad, time);
  for (const [open, close, content] of reported.splice(0)) {
    const found = await (await engine.r2r.execute(content)).toArray();
    const rows = found.map((row) =>
      Object.fromEntries([...row].map(([variable, term]) => [variable.value, term.value])),
    );
    print(JSON.stringify({ open, close, rows }));
  }
}
