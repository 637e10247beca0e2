// All queries: their state, rate, last window and exactness; pause, resume, delete.
import { pathOf, post, remove, told, type Query } from "../api";
import { sparkline } from "../charts";
import { confirmed, h, keyed, setAttr, setText } from "../dom";
import { count, rate, span, time } from "../format";
import { empty, link, say, showExact, showState, type View } from "../parts";
import { store } from "../store";

export function queriesView(): View {
  const body = h("tbody");
  const heads = ["Query", "State", "Elements", "Last window", "Exactness", "Answers", ""];
  const table = h(
    "table",
    { class: "list" },
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head || h("span", { class: "unseen" }, "Actions"))))),
    body,
  );
  const nothing = empty("No query is registered.", link("Write a query", "#/editor", "button primary"));
  const element = h(
    "section",
    { "aria-labelledby": "title" },
    h("div", { class: "head" }, h("h1", { id: "title" }, "Queries"), link("New query", "#/editor", "button primary")),
    table,
    nothing,
  );
  const update = (): void => {
    table.hidden = store.queries.length === 0;
    nothing.hidden = store.queries.length > 0 || store.isUp === null;
    keyed(body, store.queries, (query) => `${query.name} ${query.created}`, created, (row, query) => rows.get(row)!(query));
  };
  update();
  return { element, close: store.listen(update) };
}

const rows = new WeakMap<HTMLElement, (query: Query) => void>();

function created(query: Query): HTMLElement {
  const { name } = query;
  const path = pathOf("queries", name);
  const state = h("span"), reason = h("div", { class: "reason" }), speed = h("span", { class: "figure" });
  const spark = sparkline();
  const window = h("div", { class: "figure" }), lag = h("div", { class: "small" });
  const exact = h("span"), share = h("div", { class: "small" }), answers = h("span", { class: "figure" });
  const detail = h("div", { class: "small" });
  const act = (call: () => Promise<unknown>, done: string) => async (): Promise<void> => {
    try {
      await call();
      say(done);
    } catch (error) {
      say(told(error), true);
    }
    await store.refresh();
  };
  const pause = h("button", { click: act(() => post(`${path}/pause`, {}), `${name} is paused`) }, "Pause");
  const resume = h("button", { click: act(() => post(`${path}/resume`, {}), `${name} goes on`) }, "Resume");
  const stop = h("button", {
    class: "danger",
    click: async () => {
      if (await confirmed(`Delete ${name} with its answers?`, "Delete")) await act(() => remove(path), `${name} is deleted`)();
    },
  }, "Delete");
  for (const [button, what] of [[pause, "Pause"], [resume, "Resume"], [stop, "Delete"]] as const) setAttr(button, "aria-label", `${what} ${name}`);
  const cell = (label: string, ...children: (Node | string)[]): HTMLElement => h("td", { "data-label": label }, h("div", {}, ...children));
  const row = h(
    "tr",
    { "data-query": name },
    h("th", { scope: "row" }, link(name, `#/ranking/${encodeURIComponent(name)}`, "name"), detail),
    cell("State", state, reason),
    cell("Elements", spark.element, speed),
    cell("Last window", window, lag),
    cell("Exactness", exact, share),
    cell("Answers", answers),
    h("td", { class: "actions" }, link("Edit", `#/editor/${encodeURIComponent(name)}`), query.services.length ? link("Budget", `#/budget/${encodeURIComponent(name)}`) : null, pause, resume, stop),
  );
  rows.set(row, (now) => {
    const { status } = now;
    showState(state, now.state, now.reason);
    setText(reason, now.reason ?? "");
    setText(detail, [now.operator, now.limit === null ? "" : `top ${now.limit}`, now.services[0]?.policy ?? ""].filter(Boolean).join(" · "));
    setText(speed, rate(status.rate));
    spark.draw(store.rates.get(`query ${name}`) ?? []);
    setText(window, status.last_window ? time(status.last_window.close) : "–");
    setText(lag, status.lag !== null && Math.abs(status.lag) < 31536e6 ? `watermark ${span(status.lag)} ago` : "");
    showExact(exact, status.last_exact);
    setText(share, status.windows ? `${count(status.exact)} of ${count(status.windows)} windows` : "");
    setText(answers, count(now.answers.last ?? 0));
    const isResting = now.state === "paused" || now.state === "failed" || now.state === "finished";
    pause.hidden = isResting;
    resume.hidden = !isResting;
  });
  return row;
}
