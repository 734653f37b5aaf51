// What stands below the picture: the table, the derivation, the code.

import { button, field, make, select } from "./dom";
import type { Problem } from "./editor";
import { Picture } from "./picture";
import type { Meaning } from "./picture";
import type { Code, ProgramTab } from "./state";

export type Row = [index: number, coordinate: string, value: string | null, bank: number | null];

export interface Table {
  rows: Row[];
  size: number;
  threads: number;
  rank: number;
}

const SHOWN = 512;

// Rows of a layout's table; pointing at one tells its number.
export class TablePane {
  readonly host = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of the layout" });
  private rows: HTMLTableRowElement[] = [];
  private lit: HTMLTableRowElement[] = [];
  private soon: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly pointed: (row: number | undefined) => void) {
    this.host.addEventListener("pointerover", (event) => {
      const row = (event.target as Element).closest("tr");
      const number = row ? this.rows.indexOf(row) : -1;
      this.pointed(number < 0 ? undefined : number);
    });
    this.host.addEventListener("pointerleave", () => this.pointed(undefined));
  }

  // Shows a table soon: the picture comes first.
  show(table: Table | null | undefined, pairs: boolean, refused: boolean): void {
    clearTimeout(this.soon);
    this.rows = [];
    this.lit = [];
    this.soon = setTimeout(() => this.fill(table, pairs, refused), 30);
  }

  private fill(table: Table | null | undefined, pairs: boolean, refused: boolean): void {
    if (!table) {
      const why = refused ? "There is no value, so there is no table." : "This value is no layout of known numbers, so it has no table.";
      this.host.replaceChildren(make("p", { class: "quiet" }, why));
      return;
    }
    const banks = table.rows.some((row) => row[3] !== null);
    const heads = ["index", "coordinate", ...(pairs ? ["thread", "value"] : []), "offset", ...(banks ? ["bank"] : [])];
    const body = make("tbody");
    for (const [index, coordinate, value, bank] of table.rows.slice(0, SHOWN)) {
      const own = pairs ? [index % table.threads, Math.floor(index / table.threads)] : [];
      const cells = [index, coordinate, ...own, value ?? "?", ...(banks ? [bank ?? ""] : [])];
      const row = make("tr", {}, ...cells.map((text) => make("td", {}, String(text))));
      this.rows.push(row);
      body.append(row);
    }
    const parts: Node[] = [make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))), body)];
    if (table.size > this.rows.length) {
      parts.push(make("p", { class: "quiet" }, `the first ${this.rows.length} of ${table.size} indices`));
    }
    this.host.replaceChildren(...parts);
  }

  // Lights rows, and brings the first of them into view if `follow`.
  light(numbers: number[], follow: boolean): void {
    for (const row of this.lit) row.classList.remove("lit");
    this.lit = numbers.flatMap((number) => this.rows[number] ?? []);
    for (const row of this.lit) row.classList.add("lit");
    const first = this.lit[0];
    if (follow && first) this.host.scrollTop = first.offsetTop - this.host.clientHeight / 2;
  }
}

export interface Derivation {
  text?: string;
  error?: Problem;
  parts?: { indent: number; formula: string; lines: string[]; pictures: string[] }[];
  law?: { law: string; answer: "holds" | "fails" | "open"; words: string };
}

// How a value comes about. `pointed` is told what is pointed at in its pictures.
export function showDerivation(host: HTMLElement, derivation: Derivation, pointed: (meaning: Meaning | undefined) => void): void {
  const parts: Node[] = [];
  const law = derivation.law;
  if (law) {
    const said = { holds: "holds", fails: "FAILS", open: "was not refuted" }[law.answer];
    parts.push(make("p", { class: `law ${law.answer}` }, make("code", {}, law.law), ` ${said}${law.words ? ` ${law.words}` : ""}`));
  }
  for (const part of derivation.parts ?? []) {
    const section = make("section", { class: part.indent > 0 ? "part inner" : "part" }, make("h2", {}, part.formula));
    if (part.lines.length > 0) section.append(make("pre", { tabindex: "0" }, part.lines.join("\n")));
    for (const svg of part.pictures) {
      const picture = new Picture(`Picture of ${part.formula}`, pointed, () => undefined);
      picture.show(svg);
      section.append(picture.host);
    }
    parts.push(section);
  }
  if (derivation.error && parts.length === 0) parts.push(make("p", { class: "wrong" }, derivation.error.message));
  if (parts.length === 0) parts.push(make("p", { class: "quiet" }, "This value is written down; nothing is derived."));
  host.replaceChildren(...parts);
}

const CODE: Code = { lang: "cuda", at: "leaves", promise: "inside", form: "function", int: "64", coordinate: false, inside: "", name: "" };

// The choices of index arithmetic as source text, and the text.
export function codeControls(host: HTMLElement, tab: ProgramTab, changed: () => void, copy: () => void): void {
  const code = tab.code;
  const get = <K extends keyof Code>(name: K): Code[K] => (code[name] ?? CODE[name]) as Code[K];
  const put = <K extends keyof Code>(name: K, value: Code[K]) => {
    if (value === CODE[name]) delete code[name];
    else code[name] = value;
    changed();
  };
  const languages = [["rust", "Rust"], ["c", "C"], ["cuda", "CUDA"], ["python", "Python"], ["triton", "Triton"]] as const;
  const box = make("input", { type: "checkbox", onchange: () => put("coordinate", box.checked) });
  box.checked = get("coordinate");
  host.replaceChildren(
    select("Language", languages, get("lang"), (value) => put("lang", value)),
    select("Variables", [["index", "one index"], ["modes", "one a mode"], ["leaves", "one a leaf"]], get("at"), (value) => put("at", value)),
    select("Promised", [["inside", "inside the shape"], ["not-negative", "not negative"], ["nothing", "nothing"]], get("promise"), (value) => put("promise", value)),
    select("Form", ["expression", "statements", "function"], get("form"), (value) => put("form", value)),
    select("Integers", [["64", "64 bits"], ["32", "32 bits"]], get("int"), (value) => put("int", value)),
    field("Within bounds", get("inside"), (value) => put("inside", value.trim()), { placeholder: "(M,8)" }),
    make("label", { class: "check" }, box, make("span", {}, "coordinate instead of offset")),
    button("Copy", copy),
  );
}
