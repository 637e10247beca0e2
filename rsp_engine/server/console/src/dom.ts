// Elements without HTML: whatever comes from data is text.

type Child = Node | string | number | null | undefined | false;
type Listener = (event: Event) => void;
export type Props = Record<string, string | number | boolean | null | undefined | Listener>;

const SVG = "http://www.w3.org/2000/svg";

function set(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
}

/** Create an element: functions are listeners, other properties are attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, props);
  add(element, children);
  return element;
}

/** Create an element of SVG. */
export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag) as SVGElement;
  set(element, props);
  add(element, children);
  return element;
}

function add(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Set the text of an element, if it has another one. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Set or remove an attribute, if it is another one. */
export function setAttr(element: Element, name: string, value: string | null): void {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Let the children of an element be those of some keys, in their order; keep those that stay. */
export function keyed<T>(
  parent: Element,
  items: readonly T[],
  key: (item: T) => string,
  create: (item: T) => HTMLElement,
  update: (element: HTMLElement, item: T, index: number) => void,
): void {
  const old = new Map<string, HTMLElement>();
  for (const child of parent.children) {
    const element = child as HTMLElement;
    if (element.dataset["key"] !== undefined) old.set(element.dataset["key"], element);
  }
  let before: Element | null = parent.firstElementChild;
  items.forEach((item, index) => {
    const name = key(item);
    let element = old.get(name);
    if (element === undefined) {
      element = create(item);
      element.dataset["key"] = name;
    }
    old.delete(name);
    if (element === before) before = element.nextElementSibling;
    else parent.insertBefore(element, before);
    update(element, item, index);
  });
  for (const element of old.values()) element.remove();
}

/** Ask a yes-or-no question in a dialog. */
export function confirmed(question: string, yes: string): Promise<boolean> {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { "aria-label": question, close: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      h("p", {}, question),
      h(
        "form",
        { method: "dialog", class: "row end" },
        h("button", { value: "no" }, "Cancel"),
        h("button", { value: "yes", class: "danger" }, yes),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
