// Makes elements. Texts become text nodes and nothing else.

type Child = Node | string | null | undefined | false;

interface Properties {
  [name: string]: string | number | boolean | undefined | ((event: never) => void);
}

// An element with attributes, listeners (names that begin with `on`) and children.
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as unknown as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

export function button(text: string, onclick: () => void, more: Properties = {}): HTMLButtonElement {
  return make("button", { type: "button", onclick, ...more }, text);
}

export function select(
  label: string,
  choices: readonly (string | readonly [string, string])[],
  value: string,
  onchange: (value: string) => void,
): HTMLLabelElement {
  const list = make("select", { onchange: () => onchange(list.value) });
  for (const choice of choices) {
    const [name, text] = typeof choice === "string" ? [choice, choice] : choice;
    list.append(make("option", { value: name, selected: name === value }, text));
  }
  list.value = value;
  return make("label", {}, make("span", {}, label), list);
}

export function field(
  label: string,
  value: string,
  oninput: (value: string) => void,
  more: Properties = {},
): HTMLLabelElement {
  const box = make("input", { type: "text", spellcheck: "false", autocomplete: "off", ...more });
  box.value = value;
  box.addEventListener("input", () => oninput(box.value));
  return make("label", {}, make("span", {}, label), box);
}

// Copies a text; returns whether the browser let it.
export async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page from disk may have no clipboard of its own.
    const box = make("textarea", { "aria-hidden": "true", class: "away" });
    box.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    return done;
  }
}

export function byId<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found as T;
}

// Arrow keys go from tab to tab.
export function arrows(host: HTMLElement): void {
  host.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = [...host.querySelectorAll<HTMLElement>("[role=tab]")];
    const at = all.indexOf(document.activeElement as HTMLElement);
    if (at < 0) return;
    event.preventDefault();
    const next = all[(at + step + all.length) % all.length];
    const number = next ? all.indexOf(next) : 0;
    next?.click();
    (host.querySelectorAll<HTMLElement>("[role=tab]")[number])?.focus();
  });
}
