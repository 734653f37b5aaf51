// A block of a kernel, statement by statement: the steps it takes, where it stands, and what is in
// memory and in registers there.

import { button, field, make, select } from "./dom";
import { Picture } from "./picture";
import type { Meaning } from "./picture";
import type { KernelTab } from "./state";

type Line = [statement: number, warps: string, read: number, written: number, wavefronts: number, least: number];

interface Excerpt {
  file: string;
  statement: string;
  first: number;
  line: number;
  lines: string[];
}

interface Shown {
  name: string;
  what: "global" | "shared" | "instruction";
  type?: string;
  layout?: string;
  touched?: boolean;
  note?: string;
  svg: string;
}

export interface Steps {
  grid: [number, number, number];
  cluster: number;
  threads: number;
  launches: number;
  count: number;
  step: number;
  steps: Line[][];
  statements: [string, string][];
  findings: { code: string; message: string }[] | null;
  code: Excerpt[];
  told: string[];
  registers: [name: string, operation: string, type: string, value: string, data: boolean][];
  written: number;
  pictures: Shown[];
  requests: [number: number, warp: number, array: string, wavefronts: number, least: number][];
  banks: { request: number; svg: string } | null;
}

const AXES = ["x", "y", "z"] as const;

export class StepsPane {
  readonly host = make("div", { class: "steps" });
  private readonly fields = make("div", { class: "fields" });
  private readonly bar = make("div", { class: "actions bar" });
  private readonly slider = make("input", { type: "range", min: 0, step: 1, "aria-label": "Step" });
  private readonly where = make("output", { class: "where" });
  private readonly list = make("ol", { class: "trail", "aria-label": "Steps of the block" });
  private readonly now = make("div", { class: "now" });
  private readonly status = make("p", { class: "pointed", role: "status", "aria-live": "polite" });
  private tab: KernelTab | undefined;
  private answer: Steps | undefined;
  private listed = "";
  private pictures: Picture[] = [];
  // Asked for here, and not kept in a link: the access whose banks are shown.
  private request: number | null = null;
  // What stands where what is pointed at is told.
  private hint = "";

  private readonly running: HTMLElement;

  constructor(
    private readonly again: (tab: KernelTab) => void,
    stop: () => void,
  ) {
    this.running = make("p", { class: "quiet running", role: "status", hidden: true }, "The block is run anew … ", button("Stop", stop, { class: "small" }));
    this.bar.append(
      button("First", () => this.go(0)),
      button("Back", () => this.go(this.at() - 1), { "data-step": "back" }),
      button("Forward", () => this.go(this.at() + 1), { "data-step": "forward" }),
      button("Next access to memory", () => this.go(this.nextAccess())),
      this.slider,
      this.where,
    );
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.list.addEventListener("click", (event) => {
      const row = (event.target as Element).closest<HTMLElement>("[data-at]");
      if (row) this.go(Number(row.dataset["at"]));
    });
    this.list.addEventListener("keydown", (event) => {
      const along = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!along) return;
      event.preventDefault();
      this.go(this.at() + along);
      this.list.querySelector<HTMLElement>("[aria-current]")?.focus();
    });
    const left = make("div", { class: "left" }, this.list);
    this.host.append(this.fields, this.bar, this.running, make("div", { class: "walk" }, left, this.now));
  }

  // Whether another step is being computed, and takes a while.
  wait(on: boolean): void {
    this.running.hidden = !on;
  }

  // What is asked of the engine besides the kernel.
  question(tab: KernelTab): object {
    const { block, step, access, thread, early, whole } = tab.at;
    return { block, step, thread, early, whole, ...(access === undefined ? {} : { access }), ...(this.request === null ? {} : { request: this.request }) };
  }

  show(tab: KernelTab, answer: Steps): void {
    const other = this.tab !== tab || this.answer?.threads !== answer.threads || String(this.answer?.grid) !== String(answer.grid);
    this.tab = tab;
    this.answer = answer;
    tab.at.step = answer.step;
    delete tab.at.access;
    if (other) this.controls(tab, answer);
    this.slider.max = String(answer.count);
    this.slider.value = String(answer.step);
    this.slider.setAttribute("aria-valuetext", `step ${answer.step} of ${answer.count}`);
    this.where.textContent = `step ${answer.step} of ${answer.count}`;
    this.trail(answer);
    this.here(tab, answer);
  }

  private at(): number {
    return this.tab?.at.step ?? 0;
  }

  private go(step: number): void {
    const { tab, answer } = this;
    if (!tab || !answer) return;
    const next = Math.max(0, Math.min(answer.count, step));
    if (next === tab.at.step) return;
    tab.at.step = next;
    delete tab.at.access;
    this.request = null;
    this.mark(next);
    this.again(tab);
  }

  private nextAccess(): number {
    const steps = this.answer?.steps ?? [];
    for (let at = this.at(); at < steps.length; at++) {
      if (steps[at]?.some(([, , read, written]) => read + written > 0)) return at + 1;
    }
    return this.answer?.count ?? 0;
  }

  private controls(tab: KernelTab, answer: Steps): void {
    const ask = () => this.again(tab);
    const number = (label: string, value: number, end: number, put: (value: number) => void) =>
      field(label, String(value), (text) => {
        const whole = Number(text);
        if (text === "" || !Number.isSafeInteger(whole) || whole < 0 || whole >= end) return;
        put(whole);
        ask();
      }, { type: "number", min: 0, max: end - 1, step: 1 });
    const blocks = AXES.map((axis, at) => (answer.grid[at] ?? 1) > 1 && number(`Block ${axis} of ${answer.grid[at]}`, tab.at.block[at] ?? 0, answer.grid[at] ?? 1, (value) => {
      tab.at.block[at] = value;
    }));
    const thread = number(`Thread of ${answer.threads}`, tab.at.thread, answer.threads, (value) => {
      tab.at.thread = value;
    });
    const copies = select("Asynchronous copies", [["late", "when they are waited for"], ["early", "at once"]], tab.at.early ? "early" : "late", (value) => {
      tab.at.early = value === "early";
      ask();
    });
    const whole = select("Tensors", [["values", "values, a part"], ["whole", "who touches what, all"]], tab.at.whole ? "whole" : "values", (value) => {
      tab.at.whole = value === "whole";
      ask();
    });
    this.fields.replaceChildren(...blocks.filter((one) => one !== false), thread, copies, whole);
  }

  // The list of steps; made anew only where it is another one.
  private trail(answer: Steps): void {
    const text = JSON.stringify([answer.steps, answer.statements]);
    if (text !== this.listed) {
      this.listed = text;
      const rows = answer.steps.map((lines, at) => {
        const parts = lines.map(([statement, warps, read, written, wavefronts, least]) => {
          const [name, place] = answer.statements[statement] ?? ["", ""];
          const bytes = [read > 0 && `reads ${read}`, written > 0 && `writes ${written}`].filter(Boolean).join(", ");
          const waves = wavefronts > 0 && `${wavefronts} wavefronts${wavefronts > least ? ` (${least} would do)` : ""}`;
          const more = [bytes && `${bytes} bytes`, waves].filter(Boolean).join("; ");
          return make(
            "span",
            { class: `what${wavefronts > least ? " conflict" : ""}${read + written === 0 ? " still" : ""}` },
            make("strong", {}, name),
            make("small", {}, `${warps === "" ? "TMA" : /[-,]/.test(warps) ? `warps ${warps}` : `warp ${warps}`} · ${place.split("/").at(-1) ?? place}`),
            more !== "" && make("small", { class: "does" }, more),
          );
        });
        return make("li", {}, make("button", { type: "button", "data-at": at + 1, class: "step" }, make("span", { class: "number" }, String(at + 1)), make("span", {}, ...parts)));
      });
      if (answer.count > rows.length) rows.push(make("li", {}, make("p", { class: "quiet" }, `and ${answer.count - rows.length} more: use the slider`)));
      this.list.replaceChildren(...rows);
    }
    this.mark(answer.step);
  }

  private mark(step: number): void {
    for (const row of this.list.querySelectorAll<HTMLElement>("[data-at]")) {
      const own = row.dataset["at"] === String(step);
      if (own) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
      row.tabIndex = own || (step === 0 && row.dataset["at"] === "1") ? 0 : -1;
      if (own) this.list.scrollTop = row.offsetTop - this.list.clientHeight / 2;
    }
    for (const [name, off] of [["back", step <= 0], ["forward", step >= (this.answer?.count ?? 0)]] as const) {
      const one = this.bar.querySelector<HTMLButtonElement>(`[data-step=${name}]`);
      if (one) one.disabled = off;
    }
  }

  private here(tab: KernelTab, answer: Steps): void {
    const parts: (Node | false)[] = [];
    if (answer.findings) {
      parts.push(
        make("p", { class: "wrong" }, `After step ${answer.count} the interpreter found something, and stopped:`),
        make("ul", {}, ...answer.findings.map((found) => make("li", {}, `${found.code ? `[${found.code}] ` : ""}${found.message}`))),
      );
    }
    if (answer.step === 0) parts.push(make("p", {}, "Before the first statement. Only this block runs, with those of its cluster; inputs are those of the check."));
    if (answer.launches > 1) parts.push(make("p", { class: "quiet" }, `The first of ${answer.launches} launches.`));
    for (const code of answer.code) parts.push(this.source(code));
    if (answer.told.length > 0) parts.push(make("ul", { class: "told" }, ...answer.told.map((line) => make("li", {}, line))));
    this.pictures = [];
    const touched = answer.pictures.filter((one) => one.touched !== false);
    const rest = answer.pictures.filter((one) => one.touched === false);
    if (touched.length > 0) {
      const product = touched.some((one) => one.what === "instruction");
      this.hint = product
        ? "A colour is a thread, T0 to T31 of each warp; V counts its values. A click shows a thread alone."
        : tab.at.whole
          ? "A colour is a thread that touches the element in this step; grey was written before."
          : "A colour is a thread that touches the element in this step; what it writes is outlined. A click shows the thread alone, here and in the registers.";
      this.status.textContent = this.hint;
      parts.push(
        this.status,
        make("div", { class: "tensors" }, ...touched.map((one) => this.tensor(one))),
      );
    }
    if (answer.banks) parts.push(this.banks(tab, answer));
    parts.push(this.registers(tab, answer));
    if (rest.length > 0) {
      const title = touched.length > 0 ? "Other tensors" : "Tensors";
      parts.push(make("details", { open: touched.length === 0 }, make("summary", {}, title), make("div", { class: "tensors" }, ...rest.map((one) => this.tensor(one)))));
    }
    this.now.replaceChildren(...parts.filter((part) => part !== false));
  }

  private source(code: Excerpt): HTMLElement {
    const width = String(code.first + code.lines.length).length;
    const rows = code.lines.map((text, at) => {
      const line = code.first + at;
      const own = line === code.line;
      return make("span", { class: own ? "line lit" : "line", "aria-current": own ? "true" : undefined }, `${String(line).padStart(width)}  ${text}\n`);
    });
    return make(
      "figure",
      { class: "source" },
      make("figcaption", {}, `${code.statement} at ${code.file}:${code.line}`),
      make("pre", { tabindex: "0", "aria-label": `Source around line ${code.line}` }, ...rows),
    );
  }

  private tensor(one: Shown): HTMLElement {
    const picture = new Picture(
      `${one.name}; arrow keys go from cell to cell, Enter shows one thread alone, Escape shows all`,
      (meaning) => this.point(meaning),
      (thread) => this.choose(thread),
    );
    picture.show(one.svg);
    this.pictures.push(picture);
    const title = one.what === "instruction" ? `Who multiplies what: ${one.name}` : `${one.name}: ${one.type} in ${one.what} memory`;
    return make(
      "figure",
      { class: one.what },
      make("figcaption", {}, make("strong", {}, title), one.layout !== undefined && make("code", {}, ` ${one.layout}`), one.note ? make("small", { class: "quiet" }, ` ${one.note}`) : false),
      picture.host,
    );
  }

  private point(meaning: Meaning | undefined): void {
    this.status.textContent = meaning?.text || this.hint;
    for (const picture of this.pictures) {
      picture.light(meaning?.thread === undefined ? undefined : (other) => other.thread === meaning.thread);
    }
  }

  // Shows a thread alone in all tensors, and its registers.
  private choose(thread: number | null): void {
    for (const picture of this.pictures) picture.isolate(thread);
    const { tab, answer } = this;
    if (thread === null || !tab || !answer || thread === tab.at.thread || thread >= answer.threads) return;
    tab.at.thread = thread;
    this.controls(tab, answer);
    this.again(tab);
  }

  private banks(tab: KernelTab, answer: Steps): HTMLElement {
    const banks = answer.banks as { request: number; svg: string };
    const choices = answer.requests.map(([number, warp, array, wavefronts, least], at) => {
      const text = `${at + 1}. warp ${warp}, ${array}: ${wavefronts} wavefront${wavefronts === 1 ? "" : "s"}${wavefronts > least ? `, ${least} would do` : ""}`;
      return [String(number), text] as const;
    });
    const picture = new Picture("Banks of shared memory", (meaning) => {
      this.status.textContent = meaning?.text || this.hint;
    }, () => undefined);
    picture.show(banks.svg);
    return make(
      "section",
      { class: "part", "aria-label": "Wavefronts" },
      make("h2", {}, "Banks of one access to shared memory"),
      make("div", { class: "fields" }, select("Access", choices, String(banks.request), (value) => {
        this.request = Number(value);
        this.again(tab);
      })),
      picture.host,
    );
  }

  private registers(tab: KernelTab, answer: Steps): HTMLElement {
    const table = (rows: Steps["registers"]) =>
      make(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Registers" },
        make(
          "table",
          {},
          make("thead", {}, make("tr", {}, ...["register", "by", "type", "value"].map((head) => make("th", { scope: "col" }, head)))),
          make("tbody", {}, ...rows.map(([name, operation, type, value]) => make("tr", {}, ...[name, operation, type, value].map((cell) => make("td", {}, cell))))),
        ),
      );
    const data = answer.registers.filter((row) => row[4]);
    const places = answer.registers.filter((row) => !row[4]);
    const section = make("section", { class: "part", "aria-label": "Registers of a thread" }, make("h2", {}, `Registers that thread ${tab.at.thread} wrote`));
    if (answer.registers.length === 0) section.append(make("p", { class: "quiet" }, "None in this step."));
    if (data.length > 0) section.append(table(data));
    if (places.length > 0) {
      section.append(make("details", { open: data.length === 0 }, make("summary", {}, `Integers and predicates, of places and conditions (${places.length})`), table(places)));
    }
    if (answer.written > answer.registers.length) section.append(make("p", { class: "quiet" }, `the first ${answer.registers.length} of ${answer.written}`));
    return section;
  }
}
