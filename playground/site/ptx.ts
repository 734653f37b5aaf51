// The PTX of any compiler: an entry and its launch, what is wrong with it, what its lines cost.

import { button, field, make, select } from "./dom";
import { Replaced } from "./engine";
import type { Engine } from "./engine";
import type { Problem } from "./editor";
import type { PtxTab } from "./state";
import { MOST_PTX } from "./state";

interface Answer {
  error?: Problem;
  entries?: { name: string; parameters: [string, number][] }[];
  entry?: string;
  findings?: { code: string; message: string; count: number }[];
  unfinished?: string | null;
  printed?: string[];
  instructions?: number;
  costs?: string | null;
}

const LIMIT = 120_000;

// Up to three numbers between commas.
function extents(text: string): [number, number, number] | undefined {
  const parts = text.split(",").map((part) => part.trim());
  if (parts.length > 3 || !parts.every((part) => /^\d{1,9}$/.test(part))) return undefined;
  const [x = 1, y = 1, z = 1] = parts.map(Number);
  return [x, y, z];
}

export class PtxPage {
  readonly host = make("div", { class: "kernel" });
  private asked: object | undefined;
  private soon: ReturnType<typeof setTimeout> | undefined;
  private readonly form = make("div", { class: "fields" });
  private readonly parameters = make("p", { class: "quiet" });
  private readonly pane = make("div", { class: "pane", tabindex: "0", id: "ptx-pane", role: "status", "aria-live": "polite" });
  private readonly text = make("textarea", { id: "ptx-text", rows: 14, spellcheck: "false", autocomplete: "off", "aria-label": "PTX", maxlength: MOST_PTX });
  private readonly list = make("textarea", { id: "ptx-arguments", rows: 4, spellcheck: "false", autocomplete: "off", "aria-label": "Arguments, one a line" });
  private tab: PtxTab | undefined;

  constructor(private readonly workshop: Engine, private readonly changed: () => void) {
    this.text.addEventListener("input", () => this.edited((tab) => (tab.ptx = this.text.value)));
    this.list.addEventListener("input", () => this.edited((tab) => (tab.arguments = this.list.value)));
    const help =
      "One argument a line, in the order of the parameters: in:f32[1024], out:f32[32,32], inout:i32[1]=zeros, i32=1024, f32=0.5, null. " +
      "Arrays hold random numbers, or =zeros, =ones, =range.";
    this.host.append(
      make("label", {}, make("span", {}, "PTX, as nvcc, NVRTC, clang or Triton wrote it"), this.text),
      this.form,
      make("label", {}, make("span", {}, "Arguments"), this.list),
      make("p", { class: "quiet" }, help),
      this.parameters,
      this.pane,
    );
  }

  private edited(put: (tab: PtxTab) => void): void {
    const tab = this.tab;
    if (!tab) return;
    put(tab);
    this.changed();
    clearTimeout(this.soon);
    this.soon = setTimeout(() => void this.ask(tab), 400);
  }

  show(tab: PtxTab): void {
    this.tab = tab;
    this.text.value = tab.ptx;
    this.list.value = tab.arguments;
    this.controls(tab, []);
    void this.ask(tab);
  }

  private controls(tab: PtxTab, entries: NonNullable<Answer["entries"]>): void {
    const put = (name: "grid" | "block" | "shared") => (value: string) => this.edited((own) => (own[name] = value));
    const names = entries.map((own) => own.name);
    this.form.replaceChildren(
      ...(names.length > 0 ? [select("Entry", names, names.includes(tab.entry) ? tab.entry : (names[0] ?? ""), (value) => this.edited((own) => (own.entry = value)))] : []),
      field("Grid", tab.grid, put("grid"), { placeholder: "8,8,1" }),
      field("Block", tab.block, put("block"), { placeholder: "32,8,1" }),
      field("Dynamic shared bytes", tab.shared, put("shared"), { placeholder: "0" }),
    );
  }

  private wrong(message: string): void {
    this.pane.replaceChildren(make("p", { class: "wrong" }, message));
  }

  private async ask(tab: PtxTab): Promise<void> {
    const grid = extents(tab.grid);
    const block = extents(tab.block);
    if (tab.ptx.trim() === "") {
      this.pane.replaceChildren(make("p", { class: "quiet" }, "Paste a text of PTX: every instruction of every thread runs here, and every access is checked."));
      return;
    }
    if (!grid || !block || !/^\d{0,9}$/.test(tab.shared.trim())) {
      this.wrong("The grid and the block are up to three numbers, such as 8,8,1, and shared memory is a number of bytes.");
      return;
    }
    const given = tab.arguments.split("\n").map((line) => line.trim()).filter((line) => line !== "");
    const launch = { text: tab.ptx, entry: tab.entry, grid, block, shared: Number(tab.shared.trim()), arguments: given };
    const question = { ask: "ptx", launch };
    this.asked = question;
    const waiting = setTimeout(() => {
      this.pane.replaceChildren(make("p", { class: "quiet" }, "The kernel runs … "), button("Stop", () => this.workshop.stop()));
    }, 300);
    try {
      const answer = await this.workshop.object<Answer>(question, "ptx", LIMIT);
      if (this.asked === question) this.told(tab, answer);
    } catch (error) {
      if (!(error instanceof Replaced) && this.asked === question) this.wrong(error instanceof Error ? error.message : String(error));
    } finally {
      clearTimeout(waiting);
    }
  }

  private told(tab: PtxTab, answer: Answer): void {
    if (answer.error) {
      this.wrong(answer.error.message);
      return;
    }
    // Fields are made anew only where nobody types.
    if (!this.form.contains(document.activeElement)) this.controls(tab, answer.entries ?? []);
    const own = (answer.entries ?? []).find((entry) => entry.name === answer.entry);
    this.parameters.textContent = own ? `Parameters of ${own.name}: ${own.parameters.map(([name, bytes]) => `${name} (${bytes} bytes)`).join(", ") || "none"}.` : "";
    if (answer.findings === undefined) {
      this.pane.replaceChildren(make("p", { class: "quiet" }, "The arguments are missing: the kernel runs as soon as they are there."));
      return;
    }
    const count = answer.findings.length;
    const heading = count === 0 ? "Nothing is found" : count === 1 ? "1 finding" : `${count} findings`;
    const parts: Node[] = [
      make("p", { class: count === 0 && !answer.unfinished ? "good" : "wrong" }, `${heading}; ${answer.instructions} instructions of threads.`),
      ...(answer.unfinished ? [make("p", { class: "wrong" }, `Not run to the end: ${answer.unfinished}`)] : []),
      ...(count > 0 ? [make("ul", {}, ...answer.findings.map((found) => make("li", {}, found.message)))] : []),
      ...(answer.printed && answer.printed.length > 0 ? [make("h2", {}, "Printed"), make("pre", { tabindex: "0" }, answer.printed.join(""))] : []),
      ...(answer.costs ? [make("h2", {}, "What its lines cost"), make("p", { class: "quiet" }, "Instructions of warps; numbers in brackets are the fewest that would do."), make("pre", { tabindex: "0" }, answer.costs)] : []),
    ];
    this.pane.replaceChildren(...parts);
  }
}
