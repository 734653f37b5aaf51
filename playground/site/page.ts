// The page: tabs of programs and kernels, what is known of the one that is open, and links to all.

import { assets as find } from "./assets";
import { controls } from "./controls";
import type { Catalogue } from "./controls";
import { arrows, byId, button, copied, make } from "./dom";
import { Editor } from "./editor";
import type { Problem } from "./editor";
import { Engine, Replaced } from "./engine";
import { explained } from "./explained";
import { showGallery } from "./gallery-dialog";
import { KernelPage } from "./kernels";
import { TablePane, codeControls, showDerivation } from "./panes";
import type { Derivation, Table } from "./panes";
import { Picture } from "./picture";
import type { Meaning } from "./picture";
import { pairs, sameCell, sameRow } from "./pointing";
import { PtxPage } from "./ptx";
import { BadLink, PANES, kernelTab, programTab, ptxTab, read, title, write } from "./state";
import type { ProgramTab, State, Tab, View } from "./state";

interface Answer {
  error?: Problem;
  text?: string;
  kind?: string;
  facts?: string[];
  call?: string | null;
  table?: Table | null;
  picture?: string;
  told?: string[];
  notes?: string[];
  proposed?: { what: string; cost: string; program: string | null }[];
  unseen?: Problem;
}

const LIMIT = 4000;
const MEMORY = ["banks", "sectors", "suggest"];
const FIRST = "zipped_divide((8,8):(8,1), [2:1;4:1])";
const NAMES = { table: "Table", derivation: "Derivation", code: "Code" } as const;

const assets = find();
const engine = new Engine(assets, "engine");
const workshop = new Engine(assets, "workshop");
const derivations = new Engine(assets, "workshop");

let state: State = { tabs: [programTab(FIRST)], active: 0 };
let catalogue: Catalogue | undefined;
let editor: Editor | undefined;
let answer: Answer | undefined;
let asked = 0;

const preferred = matchMedia("(prefers-color-scheme: dark)");
let themed: "auto" | "light" | "dark" = "auto";
const theme = () => (themed === "auto" ? (preferred.matches ? "dark" : "light") : themed);

const status = byId("status");
const notice = byId("notice");

// What is pointed at, in the picture or in the table.
const picture = new Picture("Picture; arrow keys go from cell to cell, Enter shows one thread alone, Escape shows all", point, (thread) => {
  status.textContent = thread === null ? "" : `thread ${thread} alone; arrow keys go on, Escape shows all`;
  const threads = answer?.table?.threads ?? 1;
  const open = program();
  const own = thread === null || !open || !pairs(open) ? [] : (answer?.table?.rows ?? []).filter((row) => row[0] % threads === thread);
  table.light(own.map((row) => row[0]), own.length > 0);
});
const table = new TablePane((row) => pointRow(row));
const renamed = () => {
  strip();
  changed();
};
const ptx = new PtxPage(workshop, renamed);
const kernels = new KernelPage(workshop, renamed, (source, view, name) => add(programTab(source, view, name)), theme);

function tab(): Tab {
  return state.tabs[state.active] as Tab;
}

function program(): ProgramTab | undefined {
  const open = tab();
  return open.type === "program" ? open : undefined;
}

let told: ReturnType<typeof setTimeout> | undefined;

function tell(message: string, wrong = false): void {
  clearTimeout(told);
  // What is wrong stays until something else is said.
  if (!wrong && message !== "") told = setTimeout(() => tell(""), 6000);
  notice.textContent = message;
  notice.className = wrong ? "wrong" : "";
  notice.hidden = message === "";
}

// A link that holds what the page shows; the address of the page is kept up to date with it.
let writing: ReturnType<typeof setTimeout> | undefined;
let own = "";

async function link(): Promise<string> {
  const fragment = await write(state);
  own = `#${fragment}`;
  history.replaceState(null, "", own);
  return location.href;
}

function changed(): void {
  clearTimeout(writing);
  writing = setTimeout(() => void link(), 400);
}

async function ask(): Promise<void> {
  const open = program();
  if (!open) return;
  const number = ++asked;
  const source = open.source;
  const began = performance.now();
  const question = { ask: "program", source, view: open.view, theme: theme() };
  const slow = setTimeout(() => byId("value").classList.add("waiting"), 150);
  try {
    const asks = MEMORY.includes(open.view.kind ?? "") ? workshop : engine;
    let found = await asks.object<Answer>(question, "program", LIMIT);
    // What is no program may be a text of another system, which the workshop reads.
    const { code } = found.error ?? {};
    if (number === asked && asks === engine && code?.startsWith("E02") && code !== "E0212") {
      found = await workshop.object<Answer>(question, "program", LIMIT).catch((error: unknown) => {
        if (error instanceof Replaced) throw error;
        return found;
      });
    }
    if (number !== asked) return;
    answer = found;
    show(found, source);
    document.documentElement.dataset["answered"] = String(Math.round(10 * (performance.now() - began)) / 10);
  } catch (error) {
    if (error instanceof Replaced || number !== asked) return;
    answer = undefined;
    const message = error instanceof Error ? error.message : String(error);
    show({ error: { message: `${message}: this program takes too long, or the engine failed`, help: "make its extents smaller" } }, source);
  } finally {
    clearTimeout(slow);
    if (number === asked) byId("value").classList.remove("waiting");
  }
  detail();
}

function show(found: Answer, source: string): void {
  const value = byId("value");
  const facts = byId("facts");
  const wrong = byId("wrong");
  editor?.underline(source, found.error);
  const empty = found.error?.code === "E0212";
  wrong.replaceChildren();
  if (found.error && !empty) {
    const { code, message, help, rendered } = found.error;
    wrong.append(make("p", {}, make("strong", {}, code ? `error[${code}]: ` : ""), message));
    // Sentences wrap; the place in the program keeps its columns.
    const place = (rendered ?? "").split("\n").slice(1).filter((line) => !/^\s*= help: |^\s*\|?\s*$/.test(line));
    if (place.length > 0) wrong.append(make("pre", { tabindex: "0", "aria-label": "The place in the program" }, place.join("\n")));
    if (help) wrong.append(make("p", {}, `help: ${help}`));
    if (code) wrong.append(button(`What ${code} means`, () => void explain(code)));
  }
  wrong.hidden = wrong.childElementCount === 0;
  if (empty) value.textContent = "Write a program: (4,8):(8,1)";
  else value.textContent = found.error ? "" : (found.text ?? "");
  byId("answer").hidden = value.textContent === "";
  byId("kind").textContent = found.kind ?? "";
  facts.replaceChildren(...(found.facts ?? []).map((line) => make("li", {}, line)));
  byId("told").replaceChildren(
    ...(found.notes ?? []).map((line) => make("p", { class: "note" }, make("strong", {}, "note: "), line)),
    ...(found.told ?? []).map((line) => make("p", {}, line)),
    ...(found.proposed ?? []).map((one) => {
      const source = one.program;
      return make(
        "p",
        {},
        make("strong", {}, one.what),
        ` — ${one.cost} `,
        source !== null && button("Open", () => add(programTab(source, { ...program()?.view, kind: "banks" }, one.what)), { "aria-label": `Open the program of ${one.what}` }),
      );
    }),
  );
  const unseen = found.unseen;
  byId("unseen").textContent = unseen ? `${unseen.code ? `[${unseen.code}] ` : ""}${unseen.message}${unseen.help ? ` — ${unseen.help}` : ""}` : "";
  picture.show(found.picture ?? "");
  if (found.error?.code?.startsWith("E01")) void why(source);
  status.textContent = "";
  const open = program();
  table.show(found.table, open !== undefined && pairs(open), found.error !== undefined);
}

// Where a program is refused by the algebra, the picture of how far its derivation goes.
async function why(source: string): Promise<void> {
  const number = asked;
  try {
    const found = await derivations.object<Derivation>({ ask: "derivation", source, theme: theme() }, "why", LIMIT);
    const part = (found.parts ?? []).filter((one) => one.pictures.length > 0).at(-1);
    if (!part || number !== asked) return;
    byId("unseen").textContent = `There is no value. This is how far it goes: ${part.formula}`;
    picture.show(part.pictures.at(-1) ?? "");
  } catch (error) {
    if (!(error instanceof Replaced)) byId("unseen").textContent = error instanceof Error ? error.message : String(error);
  }
}

async function explain(code: string): Promise<void> {
  const found = await derivations.object<{ page?: string; error?: Problem }>({ ask: "explanation", code }, "explanation", LIMIT);
  explained(code, found.page ?? found.error?.message ?? "", (source) => add(programTab(source)));
}

// Lights what is the same as what is pointed at in the picture, and says what that is.
function point(meaning: Meaning | undefined, group: number, ordinal: number): void {
  const rows = answer?.table?.rows ?? [];
  if (!meaning || meaning.text === "") {
    picture.light(undefined);
    table.light([], false);
    return;
  }
  const open = program();
  const threads = answer?.table?.threads ?? 1;
  const called = answer?.call ?? "";
  const found = rows.filter(sameRow(meaning, called, group, open && pairs(open) ? threads : undefined));
  picture.light(sameCell(meaning, called, group, ordinal));
  table.light(found.map((row) => row[0]), true);
  const first = found.length === 1 ? found[0] : undefined;
  const parts = [meaning.text];
  if (first && meaning.bank === undefined) {
    parts.push(`index ${first[0]}`, `coordinate ${first[1]}`, `offset ${first[2]}`);
    if (first[3] !== null) parts.push(`bank ${first[3]}`);
  }
  status.textContent = parts.join("  ·  ");
}

function pointRow(number: number | undefined): void {
  const row = number === undefined ? undefined : answer?.table?.rows[number];
  if (!row) {
    picture.light(undefined);
    table.light([], false);
    return;
  }
  const open = program();
  const threads = answer?.table?.threads ?? 1;
  const meaning: Meaning = { text: "", coordinate: row[1], offset: row[2] ?? "" };
  if (open && pairs(open)) {
    meaning.thread = row[0] % threads;
    meaning.value = Math.floor(row[0] / threads);
  }
  picture.light(sameCell(meaning, answer?.call ?? "", -1, -1));
  table.light([row[0]], false);
}

// The pane that is open below the picture.
function detail(): void {
  const open = program();
  if (!open) return;
  const strip = byId("details");
  strip.replaceChildren(
    ...PANES.map((name) => {
      const selected = name === open.pane;
      return button(NAMES[name], () => {
        open.pane = name;
        changed();
        detail();
        (strip.querySelector("[aria-selected=true]") as HTMLElement).focus();
      }, { role: "tab", id: `pane-${name}`, "aria-selected": String(selected), "aria-controls": "detail", tabindex: selected ? "0" : "-1" });
    }),
  );
  const host = byId("detail");
  host.setAttribute("aria-labelledby", `pane-${open.pane}`);
  if (open.pane === "table") host.replaceChildren(table.host);
  else if (open.pane === "derivation") void derive(host, open);
  else void code(host, open);
}

async function derive(host: HTMLElement, open: ProgramTab): Promise<void> {
  try {
    const question = { ask: "derivation", source: open.source, theme: theme() };
    const found = await derivations.object<Derivation>(question, "derivation", LIMIT);
    if (program() === open && open.pane === "derivation") showDerivation(host, found, (meaning) => point(meaning, -1, -1));
  } catch (error) {
    if (!(error instanceof Replaced)) host.replaceChildren(make("p", { class: "wrong" }, String(error)));
  }
}

async function code(host: HTMLElement, open: ProgramTab): Promise<void> {
  let fields = host.querySelector<HTMLElement>(".code-fields");
  let text = host.querySelector<HTMLElement>("pre.code");
  if (!fields || !text || host.dataset["tab"] !== String(state.tabs.indexOf(open))) {
    fields = make("div", { class: "fields code-fields" });
    text = make("pre", { class: "code", tabindex: "0", "aria-label": "Code" });
    const shown = text;
    codeControls(fields, open, () => {
      changed();
      void code(host, open);
    }, () => void copied(shown.textContent ?? ""));
    host.replaceChildren(fields, text);
    host.dataset["tab"] = String(state.tabs.indexOf(open));
  }
  try {
    const found = await workshop.object<{ code?: string; error?: Problem }>({ ask: "code", source: open.source, code: open.code }, "code", LIMIT);
    const { message, help } = found.error ?? {};
    text.classList.toggle("wrong", found.error !== undefined);
    text.textContent = found.code ?? `${message}${help ? `\nhelp: ${help}` : ""}`;
  } catch (error) {
    if (!(error instanceof Replaced)) text.textContent = String(error);
  }
}

// The picture as a file.
async function save(format: string): Promise<void> {
  const open = program();
  if (!open) return;
  const view: Partial<View> = open.view;
  const as = format === "svg" || format === "html" ? "auto" : theme();
  try {
    tell(`${format.toUpperCase()} is being written …`);
    const bytes = await workshop.ask({ ask: "file", source: open.source, view, theme: as, format }, "file", 20_000);
    if (bytes[0] === 123 /* { */) {
      const refused = JSON.parse(new TextDecoder().decode(bytes)) as { error?: Problem };
      tell(`There is no picture: ${refused.error?.message ?? "the engine refused"}`, true);
      return;
    }
    const types: Record<string, string> = { svg: "image/svg+xml", png: "image/png", pdf: "application/pdf", html: "text/html", tex: "text/x-tex" };
    const address = URL.createObjectURL(new Blob([bytes], { type: types[format] ?? "application/octet-stream" }));
    const name = (open.name || "layout").replace(/[^\w.-]+/g, "-").slice(0, 60) || "layout";
    const anchor = make("a", { href: address, download: `${name}.${format}` });
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    tell("");
  } catch (error) {
    if (!(error instanceof Replaced)) tell(error instanceof Error ? error.message : String(error), true);
  }
}

function strip(): void {
  const host = byId("tabs");
  host.replaceChildren(
    ...state.tabs.map((one, number) => {
      const selected = number === state.active;
      return button(title(one), () => open(number), {
        role: "tab", id: `tab-${number}`, "aria-selected": String(selected), "aria-controls": "main", tabindex: selected ? "0" : "-1",
      });
    }),
  );
  byId("main").setAttribute("aria-labelledby", `tab-${state.active}`);
  const name = byId<HTMLInputElement>("name");
  if (document.activeElement !== name) name.value = tab().name;
  byId<HTMLButtonElement>("close").disabled = state.tabs.length === 1;
}

function open(number: number): void {
  state.active = number;
  const one = tab();
  strip();
  byId("program").hidden = one.type !== "program";
  byId("kernel").hidden = one.type !== "kernel";
  byId("ptx").hidden = one.type !== "ptx";
  if (one.type === "kernel") void kernels.show(one);
  else if (one.type === "ptx") ptx.show(one);
  else {
    editor?.set(one, one.source);
    if (catalogue) controls(byId("controls"), one, catalogue, () => {
      changed();
      void ask();
    });
    void ask();
  }
  changed();
}

function add(one: Tab): void {
  if (state.tabs.length >= 32) {
    tell("There are 32 tabs, and no room for more: close one.", true);
    return;
  }
  state.tabs.push(one);
  open(state.tabs.length - 1);
}

function listen(): void {
  arrows(byId("tabs"));
  arrows(byId("details"));
  arrows(kernels.host);
  byId("add").addEventListener("click", () => {
    add(programTab(""));
    editor?.focus();
  });
  byId("add-kernel").addEventListener("click", () => add(kernelTab()));
  byId("add-ptx").addEventListener("click", () => add(ptxTab()));
  byId("close").addEventListener("click", () => {
    if (state.tabs.length === 1) return;
    state.tabs.splice(state.active, 1);
    open(Math.min(state.active, state.tabs.length - 1));
  });
  byId<HTMLInputElement>("name").addEventListener("input", (event) => {
    tab().name = (event.target as HTMLInputElement).value.slice(0, 80);
    strip();
    changed();
  });
  byId("gallery").addEventListener("click", () => {
    if (catalogue) showGallery(catalogue, (source, view, name) => add(programTab(source, { ...view }, name)), add);
  });
  byId("link").addEventListener("click", async () => {
    const address = await link();
    const where = (await copied(address)) ? "copied" : "in the address bar";
    tell(`The link is ${where}: it holds all tabs and choices.`);
  });
  byId("copy").addEventListener("click", () => void copied(byId("value").textContent ?? ""));
  for (const one of document.querySelectorAll<HTMLButtonElement>("[data-format]")) {
    one.addEventListener("click", () => void save(one.dataset["format"] ?? "svg"));
  }
  const choice = byId<HTMLSelectElement>("theme");
  const apply = () => {
    document.documentElement.dataset["theme"] = theme();
    const one = tab();
    if (one.type === "kernel") void kernels.show(one);
    else if (one.type === "program") void ask();
  };
  choice.addEventListener("change", () => {
    themed = choice.value as typeof themed;
    apply();
  });
  preferred.addEventListener("change", apply);
  addEventListener("hashchange", () => {
    if (location.hash !== own) void load();
  });
}

// Shows what the link holds.
async function load(): Promise<void> {
  try {
    const found = await read(location.hash);
    if (found) state = found;
    tell("");
  } catch (error) {
    if (!(error instanceof BadLink)) throw error;
    tell(error.message, true);
  }
  open(state.active);
  // The address is kept until something is changed: a link that is damaged may be mended.
  clearTimeout(writing);
}

async function begin(): Promise<void> {
  document.documentElement.dataset["theme"] = theme();
  byId("stage").append(picture.host);
  byId("kernel").append(kernels.host);
  byId("ptx").append(ptx.host);
  try {
    catalogue = await engine.object<Catalogue>({ ask: "catalogue" }, "catalogue", 20_000);
  } catch (error) {
    tell(`The engine does not start: ${error instanceof Error ? error.message : String(error)}`, true);
    return;
  }
  byId("version").textContent = catalogue.version;
  editor = new Editor(byId("editor"), catalogue.functions, (text) => {
    const one = program();
    if (!one) return;
    one.source = text;
    strip();
    changed();
    void ask();
  }, () => void ask());
  listen();
  await load();
  // What is asked for later is there before the network is gone.
  setTimeout(() => void workshop.prepare().catch(() => undefined), 1500);
}

void begin();
