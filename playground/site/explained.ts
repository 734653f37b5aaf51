// The page about an error code, with its examples to try.

import { button, make } from "./dom";

// What stands between backticks is code.
function marked(text: string): (string | HTMLElement)[] {
  return text.split(/`([^`]+)`/).map((part, at) => (at % 2 === 1 ? make("code", {}, part) : part));
}

// Shows the text of a page: a title, paragraphs, and blocks of examples. Each line of a block of
// the language can be opened as a program.
export function explained(code: string, text: string, open: (source: string) => void): void {
  // The pages of the algebra and of the language have expressions as examples.
  const language = /^E0[12]/.test(code);
  const parts: Node[] = [];
  let title = code;
  let paragraph: string[] = [];
  let block: string[] | undefined;
  const end = () => {
    if (paragraph.length > 0) parts.push(make("p", {}, ...marked(paragraph.join(" "))));
    paragraph = [];
  };
  const example = (line: string) => {
    const [, source = line, gap = "", remark = ""] = /^(.*?)(\s+)(#.*)$/.exec(line) ?? [];
    // Where the line is too wide, its remark goes below it whole.
    const row = make("div", { class: "example" }, make("code", {}, source, gap, make("span", {}, remark)));
    if (language && source !== "") {
      row.append(
        button("Try", () => {
          dialog.close();
          open(source);
        }, { class: "small", "aria-label": `Try ${source}` }),
      );
    }
    return row;
  };
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) {
      if (block) {
        parts.push(language ? make("div", { class: "examples" }, ...block.map(example)) : make("pre", { tabindex: "0" }, block.join("\n")));
        block = undefined;
      } else {
        end();
        block = [];
      }
    } else if (block) block.push(line);
    else if (line.startsWith("# ")) title = line.slice(2);
    else if (line.trim() === "") end();
    else paragraph.push(line);
  }
  end();
  const dialog = make(
    "dialog",
    { class: "explained", "aria-labelledby": "explained-title" },
    make("h2", { id: "explained-title" }, title),
    ...parts,
    button("Close", () => dialog.close()),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
