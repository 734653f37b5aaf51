// What the page shows, and links that hold it.
//
// Law: a link is read as it was written or refused with the reason; what it holds is checked field
// by field before it is used.

export interface View {
  kind: string;
  title: string;
  caption: string;
  palette: string;
  label: string;
  shade: string;
  tile: string;
  slice: string[];
  tiler: string;
  "tile-number": number[];
  atoms: string;
  threads: string;
  values: string;
  "element-bits": number;
  width: number;
  vector: number;
  access: string[];
  phase: number | null;
}

export interface Code {
  lang: string;
  at: string;
  promise: string;
  form: string;
  int: string;
  coordinate: boolean;
  inside: string;
  name: string;
}

export const PANES = ["table", "derivation", "code"] as const;
export const WANTED = ["plan", "check", "steps", "cost", "ptx"] as const;

export interface ProgramTab {
  type: "program";
  name: string;
  source: string;
  view: Partial<View>;
  pane: (typeof PANES)[number];
  code: Partial<Code>;
}

// Where a block of a kernel is looked at.
export interface At {
  block: [number, number, number];
  step: number;
  // Instead, until the step is known: after how many of those that touch memory.
  access?: number;
  thread: number;
  early: boolean;
  whole: boolean;
}

export interface KernelTab {
  type: "kernel";
  name: string;
  kernel: string;
  element: string;
  sizes: Record<string, number>;
  pane: (typeof WANTED)[number];
  target: string;
  machine: string;
  at: At;
}

// A text of PTX and its launch, as they are typed.
export interface PtxTab {
  type: "ptx";
  name: string;
  ptx: string;
  entry: string;
  grid: string;
  block: string;
  shared: string;
  arguments: string;
}

export type Tab = ProgramTab | KernelTab | PtxTab;

export interface State {
  tabs: Tab[];
  active: number;
}

export const VERSION = 1;
const MOST_TABS = 32;
const MOST_TEXT = 1 << 16;
// Letters of a text of PTX: as many as the engine reads.
export const MOST_PTX = 1 << 18;

export function programTab(source: string, view: Partial<View> = {}, name = ""): ProgramTab {
  return { type: "program", name, source, view, pane: "table", code: {} };
}

const start = (): At => ({ block: [0, 0, 0], step: 0, thread: 0, early: false, whole: false });

export function kernelTab(kernel = "transpose"): KernelTab {
  return { type: "kernel", name: "", kernel, element: "", sizes: {}, pane: "plan", target: "", machine: "H200", at: start() };
}

export function ptxTab(): PtxTab {
  return { type: "ptx", name: "", ptx: "", entry: "", grid: "1", block: "32", shared: "0", arguments: "" };
}

// What stands on a tab.
export function title(one: Tab): string {
  if (one.name) return one.name;
  if (one.type === "ptx") return one.entry ? `PTX ${one.entry}` : "PTX";
  if (one.type === "kernel") return `kernel ${one.kernel}`;
  const line = one.source.split("\n").find((text) => text.trim() !== "" && !text.trim().startsWith("#")) ?? "empty";
  return line.length > 24 ? `${line.slice(0, 23)}…` : line;
}

export class BadLink extends Error {}

// FNV-1a of 32 bits: tells a link that was cut or changed.
function sum(bytes: Uint8Array): string {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}

async function through(stream: GenericTransformStream, bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const piped = new Blob([bytes]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, Uint8Array>);
  const reader = piped.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    // What is unpacked is bounded: a short link may claim to be long.
    if (length > 64 * MOST_TEXT) throw new BadLink("the link holds more than a page does");
    parts.push(value.slice());
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

function toText(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function toBytes(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

// The fragment of a link: its version, a check sum, and the state packed.
export async function write(state: State): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const packed = await through(new CompressionStream("deflate-raw"), bytes);
  return `v${VERSION}.${sum(packed)}.${toText(packed)}`;
}

// The fragment of a link that is written by hand: `#p=` and the program, and then, if wanted, how
// it is looked at, by the names of the command's options: `#p=(32,32)&kind=banks&element-bits=32`.
// Each part is percent-encoded. `#kernel=` and a name opens a kernel, `&pane=` what is shown of it.
export function plain(fragment: string): State | undefined {
  if (!/^(p|kernel)=/.test(fragment)) return undefined;
  const parts = fragment.split("&").map((part) => {
    const at = part.indexOf("=");
    try {
      return [part.slice(0, at), decodeURIComponent(part.slice(at + 1))] as const;
    } catch {
      throw new BadLink("the program in this link is damaged: a percent sign is not followed by two digits");
    }
  });
  const [first, ...others] = parts;
  if (!first) return undefined;
  const [kind, own] = first;
  if (kind === "kernel") {
    const tab = kernelTab(text(own, "the kernel"));
    for (const [name, value] of others) {
      if (name === "pane") tab.pane = one(value, WANTED, "the pane");
      else if (name === "step" && /^\d{1,9}$/.test(value)) tab.at.step = Number(value);
      else if (name === "access" && /^\d{1,9}$/.test(value)) tab.at.access = Number(value);
      else throw new BadLink(`this link cannot be used: it says ${name} of a kernel`);
    }
    return { tabs: [tab], active: 0 };
  }
  const fields: Record<string, unknown> = {};
  for (const [name, value] of others) {
    if (name === "slice" || name === "access") fields[name] = [...((fields[name] as string[] | undefined) ?? []), value];
    else if (name === "tile-number") fields[name] = value.split(",").map(Number);
    else fields[name] = name === "phase" || NUMBERS.some((known) => known === name) ? Number(value) : value;
  }
  return { tabs: [programTab(own.slice(0, MOST_TEXT), view(fields))], active: 0 };
}

// The state of a fragment; undefined where there is none.
export async function read(fragment: string): Promise<State | undefined> {
  const text = fragment.replace(/^#/, "");
  if (text === "") return undefined;
  const simple = plain(text);
  if (simple) return simple;
  const parts = /^v(\d+)\.([0-9a-f]{8})\.([A-Za-z0-9_-]*)$/.exec(text);
  if (!parts) throw new BadLink("this link is damaged: it is not of the form that the playground writes");
  const [, version, check, packed] = parts;
  if (Number(version) !== VERSION) {
    throw new BadLink(`this link is of version ${version}, and this page reads version ${VERSION}`);
  }
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = toBytes(packed ?? "");
  } catch {
    throw new BadLink("this link is damaged: its letters do not fit together");
  }
  if (sum(bytes) !== check) throw new BadLink("this link is damaged: a part of it is missing or changed");
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(await through(new DecompressionStream("deflate-raw"), bytes)));
  } catch (error) {
    if (error instanceof BadLink) throw error;
    throw new BadLink("this link is damaged: what it holds cannot be unpacked");
  }
  return checked(value);
}

function record(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new BadLink(`${what} is no object`);
  return value as Record<string, unknown>;
}

function text(value: unknown, what: string, most = MOST_TEXT): string {
  if (typeof value !== "string" || value.length > most) throw new BadLink(`${what} is no text, or too long`);
  return value;
}

function whole(value: unknown, what: string): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) throw new BadLink(`${what} is no whole number`);
  return value;
}

function one<T extends string>(value: unknown, all: readonly T[], what: string): T {
  const found = all.find((known) => known === value);
  if (found === undefined) throw new BadLink(`${what} is none of ${all.join(", ")}`);
  return found;
}

const TEXTS = ["kind", "title", "caption", "palette", "label", "shade", "tile", "tiler", "atoms", "threads", "values"] as const;
const NUMBERS = ["element-bits", "width", "vector"] as const;
const CODE_TEXTS = ["lang", "at", "promise", "form", "int", "inside", "name"] as const;

function view(value: unknown): Partial<View> {
  const fields = record(value, "the view");
  const out: Partial<View> = {};
  for (const name of Object.keys(fields)) {
    const given = fields[name];
    const list = () => {
      if (!Array.isArray(given) || given.length > 64) throw new BadLink(`${name} is no list`);
      return given as unknown[];
    };
    const texts = TEXTS.find((known) => known === name);
    const number = NUMBERS.find((known) => known === name);
    if (texts) out[texts] = text(given, name);
    else if (number) out[number] = whole(given, name);
    else if (name === "slice" || name === "access") out[name] = list().map((item) => text(item, name));
    else if (name === "tile-number") out[name] = list().map((item) => whole(item, name));
    else if (name === "phase") out.phase = given === null ? null : whole(given, name);
    else throw new BadLink(`the view has no field ${name}`);
  }
  return out;
}

function code(value: unknown): Partial<Code> {
  const fields = record(value, "the code");
  const out: Partial<Code> = {};
  for (const name of Object.keys(fields)) {
    const texts = CODE_TEXTS.find((known) => known === name);
    if (texts) out[texts] = text(fields[name], name);
    else if (name === "coordinate") out.coordinate = fields[name] === true;
    else throw new BadLink(`the code has no field ${name}`);
  }
  return out;
}

function tab(value: unknown): Tab {
  const fields = record(value, "a tab");
  const type = one(fields["type"], ["program", "kernel", "ptx"] as const, "the type of a tab");
  const name = text(fields["name"], "the name of a tab");
  if (type === "program") {
    return {
      type,
      name,
      source: text(fields["source"], "a program"),
      view: view(fields["view"]),
      pane: one(fields["pane"], PANES, "the pane"),
      code: code(fields["code"]),
    };
  }
  if (type === "ptx") {
    return {
      type,
      name,
      ptx: text(fields["ptx"], "the PTX", MOST_PTX),
      entry: text(fields["entry"], "the entry"),
      grid: text(fields["grid"], "the grid"),
      block: text(fields["block"], "the block"),
      shared: text(fields["shared"], "the shared memory"),
      arguments: text(fields["arguments"], "the arguments"),
    };
  }
  const sizes: Record<string, number> = {};
  for (const [size, number] of Object.entries(record(fields["sizes"], "the sizes")).slice(0, 16)) {
    sizes[text(size, "a size")] = whole(number, size);
  }
  return {
    type,
    name,
    kernel: text(fields["kernel"], "the kernel"),
    element: text(fields["element"], "the type of elements"),
    sizes,
    pane: one(fields["pane"], WANTED, "the pane"),
    target: text(fields["target"], "the target"),
    machine: text(fields["machine"], "the machine"),
    // Links from before there were steps have none.
    at: fields["at"] === undefined ? start() : at(fields["at"]),
  };
}

function at(value: unknown): At {
  const fields = record(value, "where a block is looked at");
  const natural = (value: unknown, what: string): number => {
    const number = whole(value, what);
    if (number < 0 || number >= 2 ** 32) throw new BadLink(`${what} is negative, or too large`);
    return number;
  };
  const block = fields["block"];
  if (!Array.isArray(block) || block.length !== 3) throw new BadLink("the block has no three numbers");
  const [x, y, z] = (block as unknown[]).map((number) => natural(number, "the block")) as [number, number, number];
  return {
    block: [x, y, z],
    step: natural(fields["step"], "the step"),
    ...(fields["access"] === undefined ? {} : { access: natural(fields["access"], "the access") }),
    thread: natural(fields["thread"], "the thread"),
    early: fields["early"] === true,
    whole: fields["whole"] === true,
  };
}

function checked(value: unknown): State {
  try {
    const fields = record(value, "what it holds");
    const tabs = fields["tabs"];
    if (!Array.isArray(tabs) || tabs.length === 0 || tabs.length > MOST_TABS) {
      throw new BadLink(`it holds no tabs, or more than ${MOST_TABS}`);
    }
    const active = whole(fields["active"], "the number of the open tab");
    if (active < 0 || active >= tabs.length) throw new BadLink("there is no such tab");
    return { tabs: tabs.map(tab), active };
  } catch (error) {
    if (error instanceof BadLink) throw new BadLink(`this link cannot be used: ${error.message}`);
    throw error;
  }
}
