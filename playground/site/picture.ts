// Shows an SVG picture of the library, and links its cells to the same things elsewhere.
//
// Law: of a picture only the elements and attributes that the library writes come onto the page; no
// script, no address. Its style stays in a shadow root of its own, so that pictures do not meet.

const SVG = "http://www.w3.org/2000/svg";
const ELEMENTS = new Set(["svg", "g", "rect", "line", "path", "text", "tspan", "title", "desc", "image", "circle"]);
const ATTRIBUTES = new Set([
  "class", "role", "viewBox", "width", "height", "x", "y", "x1", "y1", "x2", "y2", "rx", "ry", "cx", "cy", "r", "d",
  "transform", "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "font-size",
  "font-weight", "text-anchor", "opacity", "data-t", "preserveAspectRatio", "href",
]);

const OWN_STYLE = `
:host{display:block}
svg{display:block}
svg.tilewright>.paper{fill:none}
image{image-rendering:pixelated}
.tiles>g{cursor:default}
[data-t]{cursor:pointer}
.lit>rect{stroke:var(--accent);stroke-width:2.5px}
.cursor>rect{stroke:var(--accent);stroke-width:3.5px}
.isolating [data-t]:not(.on){opacity:.12}
`;

// How small a picture may become.
const LEAST = 0.75;

// What a cell is of: as much of it as its tooltip says.
export interface Meaning {
  text: string;
  coordinate?: string;
  offset?: string;
  index?: number;
  thread?: number;
  value?: number;
  place?: string;
  bank?: number;
  lanes?: number[];
}

const numbers = (text: string) => text.split(",").map((part) => Number(part.trim()));

export function meaning(text: string): Meaning {
  const found: Meaning = { text };
  let parts = /^(.*) → (.+)$/.exec(text);
  if (parts) {
    const coordinate = parts[1] ?? "";
    found.coordinate = coordinate;
    found.offset = parts[2] ?? "";
    return found;
  }
  parts = /thread (\d+), value (\d+) at (\(\d+,\d+\))/.exec(text);
  if (parts) {
    found.thread = Number(parts[1]);
    found.value = Number(parts[2]);
    found.place = parts[3] ?? "";
    return found;
  }
  parts = /^address (-?\d+)(?:: index (\d+))?/.exec(text);
  if (parts) {
    found.offset = parts[1] ?? "";
    if (parts[2] !== undefined) found.index = Number(parts[2]);
    return found;
  }
  parts = /^A\((\d+)\) = (-?\d+)$/.exec(text);
  if (parts) {
    found.index = Number(parts[1]);
    found.offset = parts[2] ?? "";
    return found;
  }
  parts = /\bby thread (\d+)/.exec(text);
  if (parts) {
    found.thread = Number(parts[1]);
    return found;
  }
  parts = /^bank (\d+)(?:.*: lanes? ([\d, ]+))?/.exec(text);
  if (parts) {
    found.bank = Number(parts[1]);
    if (parts[2]) found.lanes = numbers(parts[2]);
  }
  return found;
}

// Takes away what the library does not write; returns whether anything is left.
function cleaned(element: Element): boolean {
  if (element.namespaceURI !== SVG || !ELEMENTS.has(element.localName)) return false;
  for (const { name, value } of [...element.attributes]) {
    const known = ATTRIBUTES.has(name) && (name !== "href" || /^data:image\/png;base64,[A-Za-z0-9+/=]*$/.test(value));
    if (!known) element.removeAttribute(name);
  }
  for (const child of [...element.childNodes]) {
    if (child.nodeType === Node.TEXT_NODE) continue;
    if (child.nodeType !== Node.ELEMENT_NODE || !cleaned(child as Element)) child.remove();
  }
  return true;
}

// A picture on the page. `told` is called with what is pointed at, and with nothing when that ends.
export class Picture {
  readonly host: HTMLElement;
  private readonly root: ShadowRoot;
  private cells: SVGElement[] = [];
  private meanings = new Map<SVGElement, Meaning>();
  private groups = new Map<SVGElement, number>();
  private isolated: number | null = null;
  private cursor = -1;

  constructor(
    label: string,
    private readonly told: (meaning: Meaning | undefined, group: number, ordinal: number) => void,
    private readonly chosen: (thread: number | null) => void,
  ) {
    this.host = document.createElement("div");
    this.host.className = "picture";
    this.host.tabIndex = 0;
    this.host.setAttribute("role", "group");
    this.host.setAttribute("aria-label", label);
    this.root = this.host.attachShadow({ mode: "open" });
    this.root.addEventListener("pointerover", (event) => this.point(this.cellOf(event)));
    this.host.addEventListener("pointerleave", () => this.point(undefined));
    this.root.addEventListener("click", (event) => this.click(this.cellOf(event)));
    this.host.addEventListener("keydown", (event) => this.key(event));
    this.host.addEventListener("blur", () => this.step(undefined));
  }

  // Shows another picture; an empty text shows none.
  show(svg: string): void {
    const styles: string[] = [];
    let picture: Element | undefined;
    if (svg) {
      // The policy of the page refuses styles in what is parsed, so they go another way. Words of
      // the program are escaped in the text, and never look like this.
      const text = svg.replace(/<style>([^<]*)<\/style>/, (_, style: string) => {
        styles.push(style);
        return "";
      });
      const parsed = new DOMParser().parseFromString(text.replaceAll(' style="image-rendering:pixelated"', ""), "image/svg+xml");
      if (cleaned(parsed.documentElement)) picture = document.adoptNode(parsed.documentElement);
    }
    const sheets = [...styles, OWN_STYLE].map((text) => {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(text);
      return sheet;
    });
    if (picture instanceof SVGElement) {
      // It shrinks to the room that there is, as long as its words can be read; then it scrolls.
      const width = Number(picture.getAttribute("width"));
      if (width > 0) picture.style.maxWidth = `max(100%, ${Math.round(LEAST * width)}px)`;
    }
    this.host.hidden = !picture;
    this.root.adoptedStyleSheets = sheets;
    this.root.replaceChildren(...(picture ? [picture] : []));
    this.cells = [...this.root.querySelectorAll<SVGElement>(".tiles > g")];
    this.meanings.clear();
    this.groups.clear();
    const groups = [...this.root.querySelectorAll(".tiles")];
    const places = new Map(groups.map((group, number) => [group, number]));
    for (const cell of this.cells) this.groups.set(cell, places.get(cell.parentElement as Element) ?? 0);
    this.cursor = -1;
    this.isolate(null);
  }

  private meaningOf(cell: SVGElement): Meaning {
    let known = this.meanings.get(cell);
    if (!known) {
      known = meaning(cell.querySelector("title")?.textContent ?? "");
      this.meanings.set(cell, known);
    }
    return known;
  }

  private cellOf(event: Event): SVGElement | undefined {
    const target = event.target as Element | null;
    return target?.closest<SVGElement>(".tiles > g") ?? target?.closest<SVGElement>("[data-t]") ?? undefined;
  }

  private point(cell: SVGElement | undefined): void {
    if (!cell) this.told(undefined, 0, 0);
    else {
      const group = this.groups.get(cell) ?? 0;
      const ordinal = cell.parentElement ? [...cell.parentElement.children].indexOf(cell) : 0;
      this.told(this.meaningOf(cell), group, ordinal);
    }
  }

  // Lights the cells that `wanted` says.
  light(wanted: ((meaning: Meaning, group: number, ordinal: number) => boolean) | undefined): void {
    let group = -1;
    let ordinal = 0;
    for (const cell of this.cells) {
      const own = this.groups.get(cell) ?? 0;
      ordinal = own === group ? ordinal + 1 : 0;
      group = own;
      const on = wanted !== undefined && wanted(this.meaningOf(cell), own, ordinal);
      cell.classList.toggle("lit", on);
    }
  }

  private threads(): number[] {
    const all = new Set([...this.root.querySelectorAll<SVGElement>("[data-t]")].map((part) => Number(part.dataset["t"])));
    return [...all].sort((a, b) => a - b);
  }

  private click(cell: SVGElement | undefined): void {
    const thread = cell?.dataset["t"];
    const number = thread === undefined ? null : Number(thread);
    this.isolate(number === this.isolated ? null : number);
    this.chosen(this.isolated);
  }

  // Shows one thread alone; null shows all.
  isolate(thread: number | null): void {
    this.isolated = thread;
    this.root.firstElementChild?.classList.toggle("isolating", thread !== null);
    for (const part of this.root.querySelectorAll<SVGElement>("[data-t]")) {
      part.classList.toggle("on", thread !== null && Number(part.dataset["t"]) === thread);
    }
  }

  private step(cell: SVGElement | undefined): void {
    for (const other of this.root.querySelectorAll(".cursor")) other.classList.remove("cursor");
    cell?.classList.add("cursor");
    this.point(cell);
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      this.isolate(null);
      this.chosen(null);
      this.cursor = -1;
      this.step(undefined);
      return;
    }
    if (event.key === "Enter" || event.key === " ") {
      const cell = this.cells[this.cursor];
      if (cell) {
        this.click(cell);
        event.preventDefault();
      }
      return;
    }
    const threads = this.threads();
    const along = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (this.isolated !== null && along && threads.length > 0) {
      const at = threads.indexOf(this.isolated);
      this.isolate(threads[(at + along + threads.length) % threads.length] ?? null);
      this.chosen(this.isolated);
      event.preventDefault();
      return;
    }
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (!step || this.cells.length === 0) return;
    event.preventDefault();
    this.cursor = this.neighbour(step[0] ?? 0, step[1] ?? 0);
    const cell = this.cells[this.cursor];
    cell?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.step(cell);
  }

  // The number of the nearest cell in a direction; that of this one where there is none.
  private neighbour(right: number, down: number): number {
    const here = this.cells[this.cursor];
    if (!here) return 0;
    const middle = (cell: SVGElement) => {
      const box = cell.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2] as const;
    };
    const [x, y] = middle(here);
    let best = this.cursor;
    let least = Infinity;
    this.cells.forEach((cell, number) => {
      const [other, below] = middle(cell);
      const ahead = (other - x) * right + (below - y) * down;
      const aside = Math.abs((other - x) * down) + Math.abs((below - y) * right);
      const distance = ahead + 8 * aside;
      if (ahead > 1 && distance < least) [best, least] = [number, distance];
    });
    return best;
  }
}
