// The page: its navigation, its theme, its views.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { onTokenNeeded } from "./api";
import { redrawCharts } from "./charts";
import { h, setAttr, setText } from "./dom";
import type { View } from "./parts";
import { store } from "./store";
import { budgetView } from "./views/budget";
import { editorView } from "./views/editor";
import { queriesView } from "./views/queries";
import { rankingView } from "./views/ranking";
import { streamsView } from "./views/streams";

type Theme = "auto" | "light" | "dark";

const VIEWS: Record<string, [string, (name: string | null, rest: URLSearchParams) => View]> = {
  queries: ["Queries", queriesView],
  editor: ["Editor", (name) => editorView(name, go)],
  ranking: ["Ranking", (name) => rankingView(name, go)],
  budget: ["Budget", (name, rest) => budgetView(name, rest.get("with"), go)],
  streams: ["Streams", (name) => streamsView(name, go)],
};

const main = h("main", { id: "main", tabindex: -1 });
const links = Object.entries(VIEWS).map(([key, [title]]) => h("a", { href: `#/${key}` }, title));
const connection = h("span", { class: "connection", role: "status" });
const theme = h("select", { "aria-label": "Theme", change: () => setTheme(theme.value as Theme) },
  ...(["auto", "light", "dark"] as const).map((each) => h("option", { value: each }, each[0]!.toUpperCase() + each.slice(1))));

let view: View | null = null;
let shown = "";

function go(path: string): void {
  if (location.hash === path) show();
  else location.hash = path;
}

function show(): void {
  const [path, rest] = location.hash.slice(2).split("?");
  const [key, name] = (path ?? "").split("/");
  const known = VIEWS[key ?? ""] === undefined ? "queries" : key!;
  const now = `${known}/${name ?? ""}?${rest ?? ""}`;
  if (now === shown) return;
  shown = now;
  view?.close();
  const [title, create] = VIEWS[known]!;
  view = create(name ? decodeURIComponent(name) : null, new URLSearchParams(rest ?? ""));
  main.replaceChildren(view.element);
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
  document.title = `${title} – RSP console`;
  for (const link of links) setAttr(link, "aria-current", link.getAttribute("href") === `#/${known}` ? "page" : null);
}

function setTheme(next: Theme): void {
  document.documentElement.dataset["theme"] = next;
  theme.value = next;
  localStorage.setItem("rsp-console-theme", next);
  redrawCharts();
}

/** Ask for the token of the server, and let the browser keep it in a cookie that scripts cannot read. */
let asking: Promise<void> | null = null;
function askForToken(): Promise<void> {
  asking ??= new Promise<void>((resolve) => {
    const input = h("input", { type: "password", autocomplete: "current-password", required: true });
    const wrong = h("p", { class: "reason", role: "alert" });
    const form = h("form", {
      submit: async (event) => {
        event.preventDefault();
        const headers = { "Content-Type": "application/json" };
        const response = await fetch("/session", { method: "POST", headers, body: JSON.stringify({ token: input.value }) }).catch(() => null);
        if (response?.ok) {
          dialog.close();
          dialog.remove();
          asking = null;
          resolve();
        } else {
          setText(wrong, response === null ? "The server does not answer." : "The token is wrong.");
        }
      },
    },
      h("h2", {}, "Token"), h("p", {}, "This server needs a token: that of the variable RSP_SERVE_TOKEN."),
      h("label", { class: "field" }, h("span", { class: "label" }, "Token"), input), wrong,
      h("div", { class: "row end" }, h("button", { class: "primary" }, "Enter")));
    const dialog = h("dialog", { "aria-label": "Token", cancel: (event) => event.preventDefault() }, form);
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}

function start(): void {
  document.body.replaceChildren(
    h("a", { class: "skip", href: "#main", click: (event) => { event.preventDefault(); main.focus(); } }, "Skip to the content"),
    h("header", {}, h("a", { class: "brand", href: "#/queries" }, "RSP console"), h("nav", { "aria-label": "Views" }, ...links), h("span", { class: "space" }), connection, theme),
    main,
  );
  const stored = localStorage.getItem("rsp-console-theme");
  setTheme(stored === "light" || stored === "dark" ? stored : "auto");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
  onTokenNeeded(askForToken);
  store.listen(() => {
    setText(connection, store.isUp ? "● connected" : "○ server does not answer");
    setAttr(connection, "class", `connection ${store.isUp ? "up" : "down"}`);
  });
  addEventListener("hashchange", show);
  void store.run();
  show();
}

start();

