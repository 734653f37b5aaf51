// The choices of a view, as controls: those of the command, by its names.

import { button, field, make, select } from "./dom";
import type { ProgramTab, View } from "./state";

export interface Catalogue {
  version: string;
  functions: import("./editor").FunctionEntry[];
  products: [string, string, string[]][];
  copies: [string, string, string[]][];
  palettes: string[];
  labels: string[];
  shades: string[];
}

const KINDS: readonly (readonly [string, string])[] = [
  ["auto", "what the program suggests"],
  ["offsets", "offsets"],
  ["thread-value", "threads and values"],
  ["copy", "copy: who reads, who writes"],
  ["mma", "matrix product: A, B, C"],
  ["swizzle", "swizzle: before and after"],
  ["banks", "banks of shared memory"],
  ["sectors", "sectors of global memory"],
  ["suggest", "what would cost less"],
  ["memory", "a line of memory"],
  ["morphism", "morphism"],
  ["span", "span"],
  ["composition", "composition by refinement"],
];

const DEFAULTS: View = {
  kind: "auto", title: "", caption: "", palette: "distinct", label: "offset", shade: "grey", tile: "", slice: [], tiler: "",
  "tile-number": [0], atoms: "", threads: "", values: "", "element-bits": 16, width: 32, vector: 1, access: [], phase: null,
};

// Sets a choice, or takes it away where it is the usual one.
function put<K extends keyof View>(view: Partial<View>, name: K, value: View[K]): void {
  if (JSON.stringify(value) === JSON.stringify(DEFAULTS[name])) delete view[name];
  else view[name] = value;
}

// The choices of a tab. `changed` is called after each change; where the kind of picture changes,
// the controls are made anew.
export function controls(host: HTMLElement, tab: ProgramTab, catalogue: Catalogue, changed: () => void): void {
  const view = tab.view;
  const get = <K extends keyof View>(name: K): View[K] => (view[name] ?? DEFAULTS[name]) as View[K];
  const kind = get("kind");
  const chosen = <K extends "palette" | "label" | "shade">(name: K, label: string, all: string[]) =>
    select(label, all, get(name), (value) => {
      put(view, name, value);
      changed();
    });
  const written = (name: "tile" | "tiler" | "atoms" | "threads" | "values" | "title" | "caption", label: string, hint: string) =>
    field(label, get(name), (value) => {
      put(view, name, value.trim() === "" ? "" : value);
      changed();
    }, { placeholder: hint, maxlength: 2000 });
  const listed = (name: "slice" | "access", label: string, hint: string) =>
    field(label, get(name).join("; "), (value) => {
      put(view, name, value.split(";").map((part) => part.trim()).filter((part) => part !== ""));
      changed();
    }, { placeholder: hint, maxlength: 2000 });
  const number = (name: "element-bits" | "width" | "vector", label: string, most: number) =>
    field(label, String(get(name)), (value) => {
      const whole = Number(value);
      if (Number.isSafeInteger(whole) && whole >= 1 && whole <= most) {
        put(view, name, whole);
        changed();
      }
    }, { type: "number", min: 1, max: most, step: 1 });
  const is = (...kinds: string[]) => kinds.includes(kind);
  const memory = is("banks", "sectors", "suggest");
  const cells = is("auto", "offsets", "copy", "mma", "thread-value", "swizzle");

  const kinds = select("View", KINDS, kind, (value) => {
    put(view, "kind", value);
    changed();
    controls(host, tab, catalogue, changed);
    host.querySelector("select")?.focus();
  });
  const plain = [
    kinds,
    is("thread-value", "copy", "mma", "auto") && written("tile", "Tile", is("mma") ? "(16,8,16)" : "(16,8)"),
    is("swizzle", "copy", "auto") && number("element-bits", "Element bits", 1024),
    memory && number("element-bits", "Element bits", 128),
    memory && listed("access", "Accesses", "rows; columns; ldmatrix.x4"),
    memory && number("vector", "Elements a load", 256),
    is("banks", "sectors") && field(is("banks") ? "Phase" : "Request", get("phase") === null ? "" : String(get("phase")), (value) => {
      put(view, "phase", value === "" || !/^\d+$/.test(value) ? null : Number(value));
      changed();
    }, { placeholder: "the worst" }),
    is("memory") && number("width", "Addresses a row", 4096),
  ];
  const more = [
    cells && chosen("label", "Cells say", catalogue.labels),
    cells && chosen("shade", "Shade", catalogue.shades),
    (cells || is("memory")) && chosen("palette", "Palette", catalogue.palettes),
    is("auto", "offsets") && listed("slice", "Slices", "(2,_); (_,5)"),
    is("auto", "offsets") && written("tiler", "Tiler", "[2:1;4:1]"),
    is("auto", "offsets") && field("Tile numbers", get("tile-number").join(", "), (value) => {
      const all = value.split(",").map((part) => Number(part.trim()));
      if (all.every((one) => Number.isSafeInteger(one))) {
        put(view, "tile-number", all);
        changed();
      }
    }),
    is("auto") && written("atoms", "Atoms of an instruction", "(2,2)"),
    is("auto") && written("threads", "Threads of a copy", "(4,8):(8,1)"),
    is("auto") && written("values", "Values of a copy", "(1,8)"),
    written("title", "Title", ""),
    written("caption", "Caption", ""),
  ];
  const open = host.querySelector("details")?.open ?? false;
  const details = make(
    "details",
    { open },
    make("summary", {}, "More choices"),
    make("div", { class: "fields" }, ...more, button("As usual", () => {
      for (const name of Object.keys(view)) if (name !== "kind") delete view[name as keyof View];
      changed();
      controls(host, tab, catalogue, changed);
    })),
  );
  host.replaceChildren(make("div", { class: "fields" }, ...plain), details);
}
