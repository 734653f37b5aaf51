// Puts the page together: a folder of files for a server, and one file that works from disk.
//
//     node build.mjs FOLDER [PROFILE]
//
// The folder has engine.wasm and workshop.wasm already. It prints what a visitor loads, packed, and
// fails where that is more than it may be. Programs of the profile `quick` are for tests alone, and
// have no limit.

import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const folder = process.argv[2];
if (!folder) throw new Error("which folder?");
const site = new URL("site/", import.meta.url).pathname;

// Bytes, packed: what the page begins with, and the rest, which is loaded when a file, a kernel or a
// text of PTX is opened: 3.89 MB with the sanitizer, 2026-12-01.
const BEGIN = 1_200_000;
const REST = 4_000_000;

async function bundled(entry, define) {
  const made = await build({
    entryPoints: [site + entry],
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    legalComments: "none",
    define,
    write: false,
  });
  return made.outputFiles[0].text;
}

// The pictures of the book: its page, what the picture shows, and the link below it.
async function pictures() {
  const book = new URL("../docs/book/src/", import.meta.url);
  const found = [];
  const order = [...(await readFile(new URL("SUMMARY.md", book), "utf8")).matchAll(/\[([^\]]*)\]\(([\w-]+\.md)\)/g)];
  for (const [, title, name] of order) {
    const text = await readFile(new URL(name, book), "utf8");
    const below = /!\[([^\]]*)\]\(pictures\/[^)]*\)\n\n\[[^\]]*\]\(playground\/index\.html#([^)]*)\)/g;
    for (const [, shows, fragment] of text.matchAll(below)) found.push([title, shows, fragment]);
  }
  return found;
}

const worker = await bundled("worker.ts", {});
const page = await bundled("page.ts", { WORKER: JSON.stringify(worker), BOOK: JSON.stringify(await pictures()) });
const css = await readFile(`${site}style.css`, "utf8");
const html = await readFile(`${site}index.html`, "utf8");

// A function, because `$` in a text means something where it replaces another.
const filled = (parts) => html.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = (rules) => Object.entries({ "default-src": "'none'", "img-src": "data: blob:", "base-uri": "'none'", "form-action": "'none'", ...rules })
  .map(([name, value]) => `${name} ${value}`)
  .join("; ");

await writeFile(`${folder}/page.js`, page);
await writeFile(`${folder}/style.css`, css);
await writeFile(`${folder}/index.html`, filled({
  policy: policy({ "script-src": "'self' 'wasm-unsafe-eval'", "style-src": "'self'", "connect-src": "'self'", "worker-src": "blob:" }),
  style: '<link rel="stylesheet" href="style.css">',
  // Fetched while the page is read.
  ahead: '<link rel="preload" href="engine.wasm" as="fetch" type="application/wasm" crossorigin>',
  scripts: '<script src="page.js" defer></script>',
}));

const wasm = Object.fromEntries(await Promise.all(["engine", "workshop"].map(async (name) =>
  [name, gzipSync(await readFile(`${folder}/${name}.wasm`), { level: 9 })])));
// A script ends at `</script`, and at nothing else.
const inside = page.replaceAll("</script", "<\\/script");
const data = Object.entries(wasm).map(([name, bytes]) => `<script type="application/gzip" id="${name}-wasm">${bytes.toString("base64")}</script>`);
const single = filled({
  policy: policy({ "script-src": `${hash(inside)} 'wasm-unsafe-eval'`, "style-src": hash(css), "worker-src": "blob:" }),
  style: `<style>${css}</style>`,
  ahead: "",
  scripts: [...data, `<script>${inside}</script>`].join("\n"),
});
await writeFile(`${folder}/playground.html`, single);

const size = (text) => gzipSync(text, { level: 9 }).length;
const begin = size(html) + size(css) + size(page) + wasm.engine.length;
const rest = wasm.workshop.length;
const kb = (bytes) => `${(bytes / 1000).toFixed(0)} kB`;
console.log(`packed: page ${kb(size(page))}, engine ${kb(wasm.engine.length)}; together ${kb(begin)} of ${kb(BEGIN)} allowed`);
console.log(`packed: workshop (files, costs, code, kernels; loaded later) ${kb(rest)} of ${kb(REST)} allowed`);
console.log(`one file: ${kb(single.length)}`);
if (process.argv[3] !== "quick" && (begin > BEGIN || rest > REST)) {
  console.error("the page is larger than it may be");
  process.exit(1);
}
