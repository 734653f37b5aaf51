// A kernel of the library: its plan and tiles, a run on the interpreter, its cost, its text.

import { button, copied, field, make, select } from "./dom";
import { Replaced } from "./engine";
import type { Engine } from "./engine";
import type { Problem } from "./editor";
import type { KernelTab, View } from "./state";
import { WANTED, kernelTab } from "./state";
import { StepsPane } from "./steps";
import type { Steps } from "./steps";

interface Entry {
  name: string;
  summary: string;
  sizes: [string, number][];
  types: string[];
}

interface Kernels {
  kernels: Entry[];
  targets: string[];
  machines: string[];
}

interface Access {
  statement: string;
  memory: string;
  requests: number;
  bytes: number;
  sectors: number;
  wavefronts: number;
  least: number;
  at_most: boolean;
}

interface Buffer {
  name: string;
  type: string;
  bits: number;
  layout: string;
  shared: boolean;
  elements: string;
}

interface Answer {
  error?: Problem;
  summary?: string;
  plan?: string[];
  buffers?: Buffer[];
  grid?: string[];
  threads?: number;
  shared_bytes?: number;
  outputs?: string[];
  outline?: [number, string][];
  tiles?: boolean;
  findings?: { code: string; message: string }[];
  schedules?: number;
  instructions?: number;
  executed?: [string, number][];
  accesses?: Access[];
  compared?: number;
  worst?: number;
  machine?: string;
  text?: string;
  target?: string;
  ptx?: string;
}

const TITLES = { plan: "Plan and tensors", check: "Check on the interpreter", steps: "Step by step", cost: "Cost", ptx: "PTX" } as const;
const LIMIT = 120_000;

function accesses(rows: Access[]): HTMLElement {
  const heads = ["statement", "memory", "requests", "bytes", "sectors", "wavefronts", "least"];
  const body = rows.map((row) => {
    const shared = row.wavefronts > 0;
    const most = row.at_most ? "≤ " : "";
    const cells = [row.statement, row.memory, row.requests, row.bytes, shared ? "" : `${most}${row.sectors}`, shared ? `${most}${row.wavefronts}` : "", shared ? row.least : ""];
    return make("tr", { class: shared && row.wavefronts > row.least ? "conflict" : undefined }, ...cells.map((cell) => make("td", {}, String(cell))));
  });
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, ...body));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Accesses to memory" }, table);
}

export class KernelPage {
  readonly host = make("div", { class: "kernel" });
  private known: Kernels | undefined;
  private asked: { tab: KernelTab; pane: KernelTab["pane"]; question: object } | undefined;
  private readonly form = make("div", { class: "fields" });
  private readonly summary = make("p", {});
  private readonly tabs = make("div", { class: "tabs", role: "tablist", "aria-label": "What is shown of the kernel" });
  private readonly pane = make("div", { class: "pane", role: "tabpanel", tabindex: "0", id: "kernel-pane" });

  private readonly steps = new StepsPane((tab) => {
    this.changed();
    void this.ask(tab);
  }, () => this.workshop.stop());

  constructor(
    private readonly workshop: Engine,
    private readonly changed: () => void,
    private readonly open: (source: string, view: Partial<View>, name: string) => void,
    private readonly theme: () => string,
  ) {
    this.host.append(this.form, this.summary, this.tabs, this.pane);
  }

  async show(tab: KernelTab): Promise<void> {
    if (!this.known) {
      this.pane.replaceChildren(make("p", { class: "quiet" }, "The kernels are being loaded …"));
      try {
        this.known = await this.workshop.object<Kernels>({ ask: "kernels" }, "kernels", 10_000);
      } catch (error) {
        if (!(error instanceof Replaced)) this.pane.replaceChildren(make("p", { class: "wrong" }, String(error)));
        return;
      }
    }
    this.controls(tab);
    await this.ask(tab);
  }

  private controls(tab: KernelTab): void {
    const known = this.known;
    if (!known) return;
    const entry = known.kernels.find((one) => one.name === tab.kernel);
    const again = () => {
      this.changed();
      void this.ask(tab);
    };
    const kernels = select("Kernel", known.kernels.map((one) => one.name), tab.kernel, (value) => {
      tab.kernel = value;
      tab.sizes = {};
      tab.element = "";
      tab.at = kernelTab().at;
      this.controls(tab);
      this.form.querySelector("select")?.focus();
      again();
    });
    const sizes = (entry?.sizes ?? []).map(([name, usual]) =>
      field(name, String(tab.sizes[name] ?? usual), (value) => {
        if (!/^\d{1,12}$/.test(value)) return;
        if (Number(value) === usual) delete tab.sizes[name];
        else tab.sizes[name] = Number(value);
        tab.at = kernelTab().at;
        again();
      }, { type: "number", min: 1, step: 1 }),
    );
    const types = select("Type", entry?.types ?? [], tab.element || (entry?.types[0] ?? ""), (value) => {
      tab.element = value;
      tab.at = kernelTab().at;
      again();
    });
    const target = select("Processor", [["", "the least that has it"], ...known.targets.map((one) => [one, one] as const)], tab.target, (value) => {
      tab.target = value;
      again();
    });
    const machine = select("Machine", known.machines, tab.machine, (value) => {
      tab.machine = value;
      again();
    });
    this.form.replaceChildren(kernels, ...(entry ? [types] : []), ...sizes, ...(tab.pane === "ptx" ? [target] : []), ...(tab.pane === "cost" ? [machine] : []));
    this.summary.textContent = entry ? `${entry.summary}.` : "";
    this.tabs.replaceChildren(
      ...WANTED.map((name) => {
        const selected = name === tab.pane;
        return button(TITLES[name], () => {
          tab.pane = name;
          this.controls(tab);
          (this.tabs.querySelector("[aria-selected=true]") as HTMLElement | null)?.focus();
          again();
        }, { role: "tab", "aria-selected": String(selected), "aria-controls": "kernel-pane", tabindex: selected ? "0" : "-1" });
      }),
    );
  }

  private async ask(tab: KernelTab): Promise<void> {
    const target = tab.pane === "cost" ? tab.machine : tab.pane === "ptx" ? tab.target : "";
    const at = tab.pane === "steps" ? { at: this.steps.question(tab), theme: this.theme() } : {};
    const question = { ask: "kernel", name: tab.kernel, sizes: Object.entries(tab.sizes), element: tab.element, want: tab.pane, target, ...at };
    this.asked = { tab, pane: tab.pane, question };
    const waiting = setTimeout(() => {
      // The steps that are shown stay until others come.
      if (tab.pane === "steps" && this.steps.host.isConnected) {
        this.steps.wait(true);
        return;
      }
      this.pane.replaceChildren(
        make("p", { class: "quiet" }, "This takes a while … "),
        button("Stop", () => this.workshop.stop()),
      );
    }, 300);
    try {
      const answer = await this.workshop.object<Answer & Partial<Steps>>(question, "kernel", LIMIT);
      if (this.asked.question === question) this.told(tab, answer);
    } catch (error) {
      if (!(error instanceof Replaced)) {
        this.pane.replaceChildren(make("p", { class: "wrong" }, error instanceof Error ? error.message : String(error)));
      }
    } finally {
      clearTimeout(waiting);
      if (this.asked?.question === question) this.steps.wait(false);
    }
  }

  private told(tab: KernelTab, answer: Answer & Partial<Steps>): void {
    if (answer.error) {
      const { code, message, help } = answer.error;
      this.pane.replaceChildren(
        make("p", { class: "wrong" }, `${code ? `[${code}] ` : ""}${message}`),
        ...(help ? [make("p", {}, `help: ${help}`)] : []),
      );
      return;
    }
    if (tab.pane === "steps") {
      this.steps.show(tab, answer as Steps);
      if (!this.steps.host.isConnected) this.pane.replaceChildren(this.steps.host);
      return;
    }
    const show = { plan: () => this.plan(tab, answer), check: () => this.check(answer), cost: () => this.cost(answer), ptx: () => this.ptx(answer) };
    this.pane.replaceChildren(...show[tab.pane]());
  }

  // A layout of a tensor with the sizes of this tab in the place of their names.
  private sized(tab: KernelTab, layout: string): string {
    const sizes = this.known?.kernels.find((one) => one.name === tab.kernel)?.sizes ?? [];
    return sizes
      .filter(([name]) => new RegExp(`\\b${name}\\b`).test(layout))
      .reduce((program, [name, usual]) => `substitute(${program}, ${name}, ${tab.sizes[name] ?? usual})`, layout);
  }

  // A line of the plan, with a way to the pictures of what it names: an instruction, or who has
  // what of a tile.
  private planned(tab: KernelTab, line: string): HTMLLIElement {
    const item = make("li", {}, line);
    const look = (what: string, source: string, view: Partial<View>) =>
      item.append(" ", button("Look", () => this.open(source, view, ""), { class: "small", "aria-label": `Look at ${what} of ${tab.kernel}` }));
    const instruction = /\bSM\d+_[A-Za-z0-9_]+(?:<[^>]*>)?/.exec(line);
    if (instruction) look(instruction[0], instruction[0], {});
    const held = /\btiles of (\(\d+,\d+\)); threads and values (\S+)/.exec(line);
    if (held?.[1] && held[2]) look("threads and values", held[2], { kind: "thread-value", tile: held[1] });
    return item;
  }

  private plan(tab: KernelTab, answer: Answer): Node[] {
    const buffers = (answer.buffers ?? []).map((buffer) => {
      const look = () => {
        const view: Partial<View> = buffer.shared ? { "element-bits": buffer.bits } : {};
        this.open(this.sized(tab, buffer.layout), view, `${tab.kernel}: ${buffer.name}`);
      };
      return make(
        "tr",
        {},
        make("td", {}, buffer.name),
        make("td", {}, buffer.type),
        make("td", {}, buffer.shared ? "shared" : "global"),
        make("td", {}, make("code", {}, buffer.layout)),
        make("td", {}, button("Look", look, { class: "small", "aria-label": `Look at the layout of ${buffer.name}` })),
      );
    });
    const heads = ["tensor", "type", "memory", "layout", "look"].map((head) => make("th", { scope: "col" }, head));
    const outline = (answer.outline ?? []).map(([indent, text]) => `${"  ".repeat(indent)}${text}`);
    const tiles = answer.tiles
      ? "Tiles, as a[0:128, 0:64] for rows 0 to 127 and columns 0 to 63, and threads are those of block (0,0,0) when it comes to a statement for the first time."
      : "At these sizes a run takes too long here: choose smaller ones to see the tile that each statement reads or writes, and which threads do so.";
    return [
      make("ul", {}, ...(answer.plan ?? []).map((line) => this.planned(tab, line))),
      make("p", {}, `A grid of (${(answer.grid ?? []).join(", ")}) blocks of ${answer.threads} threads; ${answer.shared_bytes} bytes of shared memory a block.`),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Tensors" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...buffers))),
      make("p", {}, "Shown for all sizes when the kernel was built: no access outside a tensor."),
      make("ul", {}, ...(answer.outputs ?? []).map((line) => make("li", {}, line))),
      make("h2", {}, "Its statements, in order"),
      make("p", { class: "quiet" }, tiles),
      make("pre", { tabindex: "0" }, outline.join("\n")),
    ];
  }

  private check(answer: Answer): Node[] {
    if (answer.findings) {
      return [
        make("p", { class: "wrong" }, "The check found something."),
        make("ul", {}, ...answer.findings.map((found) => make("li", {}, `${found.code ? `[${found.code}] ` : ""}${found.message}`))),
      ];
    }
    const worst = answer.worst === 0 ? "all equal" : `the farthest at ${answer.worst?.toFixed(3)} of the bound that rounding gives`;
    return [
      make("p", { class: "good" }, `${answer.instructions} instructions of warps under each of ${answer.schedules} schedules: no access outside a tensor, no race, nothing unwritten read, each output written once.`),
      make("p", {}, `${answer.compared} elements compared with the definition: ${worst}. For these sizes and one set of numbers; other sizes were not run.`),
      accesses(answer.accesses ?? []),
      make("p", { class: "quiet" }, (answer.executed ?? []).map(([name, count]) => `${name}: ${count}`).join(", ")),
    ];
  }

  private cost(answer: Answer): Node[] {
    return [
      make("p", {}, `On ${answer.machine}, before it runs: counted, estimated where it says so, and times that bound it from below.`),
      make("pre", { tabindex: "0" }, answer.text ?? ""),
      ...(answer.accesses && answer.accesses.length > 0 ? [accesses(answer.accesses)] : []),
    ];
  }

  private ptx(answer: Answer): Node[] {
    const text = answer.ptx ?? "";
    return [
      make("p", {}, `For ${answer.target}, ${text.split("\n").length} lines.`, " ", button("Copy", () => void copied(text))),
      make("pre", { class: "long", tabindex: "0" }, text),
    ];
  }
}
