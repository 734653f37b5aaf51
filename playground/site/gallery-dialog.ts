// The gallery: worked problems, an example of each function, and every instruction by its name.

import type { Catalogue } from "./controls";
import { button, make } from "./dom";
import { GALLERY, KERNELS } from "./gallery";
import { plain } from "./state";
import type { Tab, View } from "./state";

const MOST = 60;

export function showGallery(
  catalogue: Catalogue,
  open: (source: string, view: Partial<View>, name: string) => void,
  add: (tab: Tab) => void,
): void {
  const list = make("div", { class: "gallery" });
  const search = make("input", { type: "search", "aria-label": "Search the gallery", placeholder: "swizzle, ldmatrix, wgmma …", spellcheck: "false" });
  const card = (title: string, says: string, source: string, view: Partial<View>, name = title) =>
    make(
      "button",
      {
        type: "button",
        class: "card",
        onclick: () => {
          dialog.close();
          open(source, view, name.length > 30 ? "" : name);
        },
      },
      make("strong", {}, title),
      make("span", {}, says),
      make("code", {}, source.length > 80 ? `${source.slice(0, 79)}…` : source),
    );
  const instructions = [...catalogue.products, ...catalogue.copies].flatMap(([arch, , names]) => names.map((name) => [arch, name] as const));
  const fill = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const has = (text: string) => words.every((word) => text.toLowerCase().includes(word));
    const parts: Node[] = [];
    for (const { section, problems } of GALLERY) {
      const shown = problems.filter((one) => has(`${section} ${one.title} ${one.says} ${one.source}`));
      if (shown.length > 0) {
        parts.push(make("h3", {}, section), make("div", { class: "cards" }, ...shown.map((one) => card(one.title, one.says, one.source, one.view ?? {}))));
      }
    }
    const kernels = KERNELS.filter((one) => has(`kernels step by step ${one.title} ${one.says} ${one.fragment}`));
    if (kernels.length > 0) {
      parts.push(
        make("h3", {}, "Kernels, step by step"),
        make("div", { class: "cards" }, ...kernels.map((one) => {
          const tab = plain(one.fragment)?.tabs[0];
          return tab?.type === "kernel" && make(
            "button",
            {
              type: "button",
              class: "card",
              onclick: () => {
                dialog.close();
                add(tab);
              },
            },
            make("strong", {}, one.title),
            make("span", {}, one.says),
            make("code", {}, tab.kernel),
          );
        })),
      );
    }
    const drawn = BOOK.filter(([page, shows]) => has(`book ${page} ${shows}`));
    if (drawn.length > 0) {
      parts.push(
        make("h3", {}, `From the book (${drawn.length})`),
        make("div", { class: "cards" }, ...drawn.map(([page, shows, fragment]) => {
          const tab = plain(fragment)?.tabs[0];
          return tab?.type === "program" && card(page, `${shows}.`, tab.source, tab.view, shows);
        })),
      );
    }
    const called = catalogue.functions.filter((one) => has(`function ${one.section} ${one.name} ${one.summary}`));
    if (called.length > 0) {
      parts.push(
        make("h3", {}, `Functions (${called.length})`),
        make("div", { class: "cards" }, ...called.map((one) => card(one.name, `${one.summary}.`, one.example, {}))),
      );
    }
    const named = instructions.filter(([arch, name]) => has(`instruction ${arch} ${name}`));
    if (named.length > 0) {
      parts.push(
        make("h3", {}, `Instructions (${named.length})`),
        make("div", { class: "cards" }, ...named.slice(0, MOST).map(([arch, name]) => card(name, `an instruction of ${arch}`, name, {}))),
      );
      if (named.length > MOST) parts.push(make("p", { class: "quiet" }, `and ${named.length - MOST} more: search by a part of the name`));
    }
    if (parts.length === 0) parts.push(make("p", { class: "quiet" }, "Nothing has all of these words."));
    list.replaceChildren(...parts);
  };
  search.addEventListener("input", fill);
  const dialog = make(
    "dialog",
    { class: "wide", "aria-labelledby": "gallery-title" },
    make("div", { class: "bar" }, make("h2", { id: "gallery-title" }, "Gallery"), search, button("Close", () => dialog.close())),
    list,
  );
  dialog.addEventListener("close", () => dialog.remove());
  fill();
  document.body.append(dialog);
  dialog.showModal();
}
