// The page in a browser: every view, error, link and file, without the network, from disk.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { build } from "esbuild";

import { browser, folder, opened, served, typed } from "./served.mjs";

const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
let server;
let chrome;
let context;
let page;
let wrong;
let go;

before(async () => {
  server = await served();
  chrome = await browser();
  context = await chrome.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  ({ page, wrong, go } = await opened(context));
  await go(server.address);
});

after(async () => {
  await chrome?.close();
  server?.close();
});

// Nothing may have gone wrong on the page, and no policy may have been broken.
function clean() {
  assert.deepEqual(wrong.splice(0), []);
}

const value = () => page.locator("#value");
const shows = (text) => page.waitForFunction((wanted) => document.getElementById("value").textContent === wanted, text);
// The control of a label, in the choices of a view or of a kernel.
const control = (label) => page.locator(`.fields label:has(> span:text-is("${label}"))`).locator("select, input");
const cells = () => page.locator("#stage .tiles > g");

async function fresh(source) {
  await page.click("#add");
  await typed(page, source);
}

test("a program has a value, facts, a picture and a table", async () => {
  await typed(page, "(6,2):(8,2) o (4,3):(3,1)");
  await shows("((2,2),3):((24,2),8)");
  assert.equal(await page.locator("#kind").textContent(), "layout");
  assert.match(await page.locator("#facts").innerText(), /size 12, cosize 43, rank 2, depth 2/);
  await page.waitForFunction(() => document.querySelectorAll("#detail tbody tr").length === 12);
  assert.ok((await cells().count()) >= 36);
  assert.match(await page.locator("#stage svg").textContent(), /A o B/);
  clean();
});

test("an error is told at its place while it is typed", async () => {
  await typed(page, "(6,2):(1,7) o (3,2):(2,3)");
  await page.waitForSelector("#wrong pre");
  assert.match(await page.locator("#wrong").innerText(), /error\[E0107\]/);
  assert.equal(await page.locator(".cm-lintRange-error").innerText(), "2");
  // The picture shows where it goes wrong.
  await page.waitForFunction(() => document.getElementById("unseen").textContent.includes("how far it goes"));
  assert.match(await page.locator("#stage svg").textContent(), /A\(7\): both|7/);
  await page.click("#wrong button");
  assert.match(await page.locator("dialog").innerText(), /E0107: composition carries/);
  await page.locator("dialog").getByRole("button", { name: "Try (6,2):(1,7) o (3,2):(2,6)" }).click();
  await shows("(3,2):(2,7)");
  await page.click("#close");
  // Bytes are not letters: the place is right behind signs of more than one byte.
  await typed(page, "# é 😀 größer\n(4,8):(8,");
  await page.waitForFunction(() => document.getElementById("wrong").textContent.includes("E02"));
  await typed(page, "# é 😀\nnowhere((4,8))");
  await page.waitForFunction(() => document.getElementById("wrong").textContent.includes("nowhere"));
  await page.waitForFunction(() => [...document.getElementById("editor").shadowRoot.querySelectorAll(".cm-lintRange-error")].some((mark) => mark.textContent === "nowhere"));
  clean();
});

test("what an answer has beyond what was asked is noted beside it", async () => {
  await typed(page, "(4,8):(8,1)(9,9)");
  await shows("81");
  await page.waitForSelector("#told .note");
  assert.match(await page.locator("#told .note").innerText(), /^note: the coordinate \(9,9\) is outside the shape \(4,8\)/);
  await typed(page, "(4,8):(8,1)(3,7)");
  await shows("31");
  assert.equal(await page.locator("#told .note").count(), 0);
  clean();
});

test("a text of another system is read where a program stands", async () => {
  await typed(page, "sA:\tSw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)");
  await shows("S<3,3,3> o 0 o (8,64):(64,1)");
  assert.match(await page.locator("#told").innerText(), /note: read as a tensor .*CuTe/);
  assert.match(await page.locator("#told").innerText(), /acts on byte addresses/);
  await typed(page, "!cute.ptr<!my.type, smem, align<1024>, S<3,4,3>>");
  await page.waitForFunction(() => document.getElementById("wrong").textContent.includes("E1305"));
  assert.match(await page.locator("#wrong").innerText(), /how wide is !my.type\?[^]*# bits: 16/);
  await typed(page, "# shape: (8,6)\nNamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('tp', None))");
  await page.waitForFunction(() => document.getElementById("told").textContent.includes("read as a sharded tensor"));
  assert.match(await page.locator("#stage .picture").evaluate((host) => host.shadowRoot.textContent), /2 6/);
  clean();
});

test("functions are completed, and helped with", async () => {
  await typed(page, "");
  await page.locator(".cm-content").click();
  await page.keyboard.type("compl");
  await page.waitForSelector(".cm-tooltip-autocomplete");
  assert.match(await page.locator(".cm-tooltip-autocomplete").innerText(), /complement/);
  assert.match(await page.locator(".cm-completionInfo").innerText(), /complement\(/);
  // A key that comes at once is not taken for a choice.
  await page.waitForTimeout(200);
  await page.keyboard.press("Enter");
  await page.keyboard.type("4:2, 24");
  await shows("(2,3):(1,8)");
  await page.keyboard.press("Escape");
  await page.locator(".cm-line span", { hasText: "complement" }).first().hover();
  await page.waitForSelector(".cm-tooltip-hover .help");
  await page.mouse.move(5, 5);
  clean();
});

test("every view", async () => {
  const views = [
    ["offsets", "(4,8):(8,1)", {}],
    ["thread-value", "((4,8),(2,2)):((32,1),(16,8))", { Tile: "(16,8)" }],
    ["copy", "((4,8):(8,1), (4,8):(1,4))", { Tile: "(4,8)" }],
    ["mma", "((4,4):(4,1), (4,4):(1,4), (4,4):(4,1))", { Tile: "(4,4,4)" }],
    ["swizzle", "S<2,0,3> o 0 o (8,8):(8,1)", { "Element bits": "32" }],
    ["banks", "(32,32):(32,1)", { Accesses: "columns", "Element bits": "32" }],
    ["sectors", "(32,64):(64,1)", { Accesses: "rows; columns", "Element bits": "32" }],
    ["suggest", "(32,32):(32,1)", { Accesses: "columns", "Element bits": "32" }],
    ["memory", "(4,3):(1,6)", { "Addresses a row": "8" }],
    ["morphism", "(32,(2,2)):(192,(24,3))", {}],
    ["span", "((2,2),3):((6,1),2)", {}],
    ["composition", "(12,3,6):(1,72,12) o (6,6):(1,6)", {}],
  ];
  for (const [kind, source, fields] of views) {
    await fresh(source);
    await control("View").selectOption(kind);
    for (const [label, text] of Object.entries(fields)) await control(label).fill(text);
    await page.waitForFunction(() => {
      const picture = document.querySelector("#stage .picture").shadowRoot.querySelector("svg");
      return picture && document.getElementById("unseen").textContent === "" && !document.getElementById("value").classList.contains("waiting");
    }, undefined, { timeout: 15_000 }).catch(async () => {
      assert.fail(`${kind}: ${await page.locator("#unseen").textContent()} ${await page.locator("#wrong").textContent()}`);
    });
    if (kind === "banks") await page.waitForFunction(() => document.getElementById("told").textContent.includes("32-way conflicts"));
    if (kind === "suggest") {
      await page.waitForFunction(() => document.querySelectorAll("#told button").length > 0);
      assert.match(await page.locator("#told").innerText(), /instead of/);
    }
    if (kind === "mma") assert.ok(await page.locator("#stage [data-t]").count() === 48);
    await page.click("#close");
  }
  clean();
});

test("what is pointed at is lit everywhere, and a click shows a thread alone", async () => {
  await fresh("zipped_divide((4,6):(6,1), [2:1;3:1])");
  await shows("((2,3),(2,2)):((6,1),(12,3))");
  await page.waitForSelector("#detail tbody tr");
  await page.locator("#stage .tiles > g", { has: page.locator("title", { hasText: "→ 8" }) }).first().hover();
  assert.equal(await page.locator("#stage .lit").count(), 2);
  assert.equal(await page.locator("#detail tr.lit").count(), 1);
  assert.match(await page.locator("#status").innerText(), /offset 8\s+·\s+bank 4/);
  await page.locator("#detail tbody tr").nth(3).hover();
  assert.equal(await page.locator("#stage .lit").count(), 2);
  await page.click("#close");

  await fresh("((4,8),(2,2)):((32,1),(16,8))");
  await control("Tile").fill("(16,8)");
  await page.waitForFunction(() => document.querySelector("#stage .picture").shadowRoot.querySelector("[data-t]"));
  await page.locator("#stage [data-t='5']").first().click();
  assert.equal(await page.locator("#stage .isolating .on").count(), 4);
  assert.match(await page.locator("#status").innerText(), /thread 5/);
  assert.equal(await page.locator("#detail tr.lit").count(), 4);
  await page.locator("#stage .picture").focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator("#status").innerText(), /thread 6 alone/);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#stage .isolating").count(), 0);
  // Arrow keys walk through the cells, and the status says where.
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.locator("#stage .cursor").count(), 1);
  assert.match(await page.locator("#status").innerText(), /thread \d+, value \d+ .*index \d+/);
  await page.click("#close");
  clean();
});

test("inputs and result have matching colours, and programs are highlighted", async () => {
  await fresh("zipped_divide((4,6):(6,1), [2:1;3:1])");
  await shows("((2,3),(2,2)):((6,1),(12,3))");
  // Each element of the matrix has in the result the colour of its tile.
  const colours = await page.locator("#stage .picture").evaluate((host) => [...host.shadowRoot.querySelectorAll(".tiles")].map((group) =>
    [...group.children].map((cell) => [cell.querySelector("title").textContent.split("→ ")[1], cell.getAttribute("class") ?? cell.querySelector("rect").getAttribute("class") ?? cell.querySelector("rect").getAttribute("fill")])));
  assert.equal(colours.length, 2);
  const before = new Map(colours[0]);
  assert.equal(before.size, 24);
  assert.ok(new Set(before.values()).size >= 4, "four tiles");
  for (const [offset, colour] of colours[1]) assert.equal(colour, before.get(offset), `offset ${offset}`);
  // Names of functions, numbers and comments look different.
  await typed(page, "# a comment\ncoalesce((4,8):(8,1))");
  await page.waitForFunction(() => document.getElementById("value").textContent !== "");
  const look = (text) => page.locator(".cm-line span", { hasText: text }).first().evaluate((span) => getComputedStyle(span).color);
  assert.equal(new Set([await look("comment"), await look("coalesce"), await look("4")]).size, 3);
  await page.click("#close");
  clean();
});

test("derivations, and code in five languages", async () => {
  await fresh("logical_divide((4,6):(1,4), 4:2)");
  await page.getByRole("tab", { name: "Derivation" }).click();
  await page.waitForSelector("#detail .part pre");
  assert.match(await page.locator("#detail").innerText(), /C = complement\(T, N\) = \(2,3\):\(1,8\)/);
  assert.match(await page.locator("#detail .law").innerText(), /holds/);
  // What is pointed at in a picture of the derivation is told, and lit in the picture above.
  const cell = page.locator("#detail .picture .tiles > g", { has: page.locator("title", { hasText: "→ 2" }) }).first();
  if (await cell.count()) {
    await cell.hover();
    await page.waitForFunction(() => document.getElementById("status").textContent.includes("→"));
    await page.mouse.move(5, 5);
  }
  await page.getByRole("tab", { name: "Code" }).click();
  for (const [lang, text] of [["rust", "fn offset"], ["c", "int64_t offset"], ["cuda", "__device__"], ["python", "def offset"], ["triton", "def offset"]]) {
    await control("Language").selectOption(lang);
    await page.waitForFunction((wanted) => document.querySelector("pre.code")?.textContent.includes(wanted), text);
  }
  await page.locator("#detail").getByRole("button", { name: "Copy" }).click();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /def offset/);
  await page.getByRole("tab", { name: "Table" }).click();
  await page.click("#close");
  clean();
});

test("files of every format", async () => {
  await fresh("(4,8):(8,1)");
  await shows("(4,8):(8,1)");
  const begins = { svg: "<svg", png: "\x89PNG", pdf: "%PDF", tex: "%", html: "<!DOCTYPE html>" };
  for (const [format, begin] of Object.entries(begins)) {
    const [file] = await Promise.all([page.waitForEvent("download"), page.click(`[data-format=${format}]`)]);
    assert.equal(file.suggestedFilename(), `layout.${format}`);
    const bytes = readFileSync(await file.path());
    assert.equal(bytes.subarray(0, begin.length).toString("latin1"), begin, format);
  }
  await page.click("#close");
  clean();
});

test("a link holds all tabs and choices", async () => {
  await fresh("((4,8),(2,2)):((32,1),(16,8))");
  await page.fill("#name", "sums <b>&amp;");
  await control("Tile").fill("(16,8)");
  await page.click("#link");
  await page.waitForFunction(() => !document.getElementById("notice").hidden);
  const address = await page.evaluate(() => navigator.clipboard.readText());
  const tabs = await page.locator("#tabs [role=tab]").allInnerTexts();
  const other = await opened(context);
  await other.go(address);
  assert.deepEqual(await other.page.locator("#tabs [role=tab]").allInnerTexts(), tabs);
  assert.ok(tabs.includes("sums <b>&amp;"));
  await other.page.waitForFunction(() => document.querySelector("#stage .picture").shadowRoot.querySelectorAll("[data-t]").length === 128);
  assert.deepEqual(other.wrong, []);

  // Damaged in every way: said, and the page works on.
  const fragment = address.split("#")[1];
  const cut = fragment.slice(0, -5);
  const [version, sum, packed] = fragment.split(".");
  const turned = `${version}.${sum}.${packed.slice(0, 10)}${packed[10] === "A" ? "B" : "A"}${packed.slice(11)}`;
  const cases = { [cut]: /damaged/, [turned]: /damaged/, [`v9.${sum}.${packed}`]: /version 9/, "v1.zzz": /damaged/, "%%%": /damaged/, "p=%E0%A4%A": /damaged/, "v1.811c9dc5.": /cannot be unpacked|damaged/ };
  for (const [damaged, said] of Object.entries(cases)) {
    await other.page.goto("about:blank");
    await other.go(`${server.address}#${damaged}`);
    await other.page.waitForFunction(() => !document.getElementById("notice").hidden);
    assert.match(await other.page.locator("#notice").innerText(), said, damaged);
    assert.notEqual(await other.page.locator("#value").innerText(), "");
  }
  await other.page.goto("about:blank");
  await other.go(`${server.address}#p=${encodeURIComponent("A = (4,8):(8,1)\nsize(A)")}`);
  await other.page.waitForFunction(() => document.getElementById("value").textContent === "32");
  // Contents that are well packed and wrong.
  const wrongs = [{ tabs: [] }, { tabs: [{ type: "program" }], active: 0 }, { tabs: [{ type: "program", name: "", source: "1", view: { evil: 1 }, pane: "table", code: {} }], active: 0 }, []];
  for (const content of wrongs) {
    const made = await other.page.evaluate(async (text) => {
      const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
      const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
      let hash = 0x811c9dc5;
      for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
      return `v1.${hash.toString(16).padStart(8, "0")}.${btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
    }, JSON.stringify(content));
    await other.page.goto("about:blank");
    await other.go(`${server.address}#${made}`);
    await other.page.waitForFunction(() => document.getElementById("notice").textContent.includes("cannot be used"));
  }
  assert.deepEqual(other.wrong, []);
  await other.page.close();
  await page.click("#close");
  clean();
});

test("what is typed never runs", async () => {
  const hostile = `<img src=x onerror="window.harmed=1"><script>window.harmed=1</script></text><style>*{display:none}</style>`;
  await fresh("(4,8):(8,1)");
  await page.locator("#controls summary").click();
  await control("Title").fill(hostile);
  await control("Caption").fill(`${hostile}]]>&lt;b&gt;`);
  await page.waitForFunction(() => document.querySelector("#stage .picture").shadowRoot.textContent.includes("onerror"));
  assert.equal(await page.locator("#stage .picture").evaluate((host) => host.shadowRoot.querySelectorAll("img,script,style,foreignObject,a").length), 0);
  await page.fill("#name", hostile);
  assert.equal(await page.locator("#tabs img, #tabs script").count(), 0);
  await typed(page, `${hostile}`);
  await page.waitForSelector("#wrong pre");
  assert.equal(await page.locator("#wrong img, #wrong script").count(), 0);
  await typed(page, "# <script>window.harmed=1</script> -->\nS = (4,8):(8,1)");
  await shows("(4,8):(8,1)");
  assert.equal(await page.evaluate(() => window.harmed), undefined);
  // Nor what a link holds.
  const other = await opened(context);
  for (const fragment of [`p=${encodeURIComponent(hostile)}`, `p=4%3A1&title=${encodeURIComponent(hostile)}&caption=${encodeURIComponent(hostile)}`, `p=4%3A1&kind=${encodeURIComponent(hostile)}`]) {
    await other.page.goto("about:blank");
    await other.go(`${server.address}#${fragment}`);
    assert.equal(await other.page.evaluate(() => window.harmed), undefined);
    assert.equal(await other.page.locator("main img, main script, #tabs img").count(), 0);
  }
  await other.page.goto("about:blank");
  await other.page.goto(`${server.address}#kernel=${encodeURIComponent(hostile)}`);
  await other.page.waitForFunction(() => document.getElementById("kernel-pane")?.textContent.includes("no kernel is called"));
  assert.equal(await other.page.locator("#kernel img, #kernel script").count(), 0);
  assert.deepEqual(other.wrong, []);
  await other.page.close();
  // The policy refuses what would run, even if it came onto the page.
  const refused = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.harmed = 1";
    document.body.append(script);
    return window.harmed;
  });
  assert.equal(refused, undefined);
  await page.waitForTimeout(200);
  assert.match(wrong.splice(0).join("\n"), /Content Security Policy/);
  await page.click("#close");
  clean();
});

test("of a picture, only what the library writes comes onto the page", async () => {
  const made = await build({ entryPoints: [new URL("../site/picture.ts", import.meta.url).pathname], bundle: true, format: "iife", globalName: "made", write: false });
  const kept = await page.evaluate(`${made.outputFiles[0].text};
    const picture = new made.Picture("", () => {}, () => {});
    document.body.append(picture.host);
    picture.show(\`<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink" onload="window.harmed=2" viewBox="0 0 9 9">
      <script>window.harmed=2</script><style>.a{fill:red}</style><foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><iframe src="javascript:window.harmed=2"/></body></foreignObject>
      <a href="javascript:window.harmed=2"><rect width="1" height="1"/></a><use href="https://elsewhere.example/a.svg"/><set attributeName="onmouseover" to="x"/>
      <image href="https://elsewhere.example/a.png"/><image x:href="data:text/html,a" href="data:image/png;base64,AAAA"/><g class="b" onclick="window.harmed=2" style="x"><rect width="2" height="2"/></g></svg>\`);
    const left = picture.host.shadowRoot.innerHTML;
    picture.host.remove();
    left.replace(/\\s+/g, " ")`);
  assert.equal(kept, '<svg viewBox="0 0 9 9"> <image></image><image href="data:image/png;base64,AAAA"></image><g class="b"><rect width="2" height="2"></rect></g></svg>');
  assert.equal(await page.evaluate(() => window.harmed), undefined);
  wrong.splice(0);
});

test("what is huge or takes for ever harms nothing", async () => {
  await fresh("(1099511627776,1024):(1024,1)");
  await shows("(1099511627776,1024):(1024,1)");
  await typed(page, "(1024,1024):(1024,1)");
  await page.waitForFunction(() => document.querySelector("#stage .picture").shadowRoot.querySelector("image"));
  await typed(page, `${"(".repeat(50_000)}4`);
  await page.waitForFunction(() => document.getElementById("wrong").textContent.includes("E0209"));
  // A program that is stopped: the page says so and answers the next one.
  await typed(page, "4:1");
  await shows("4:1");
  // Two thousand searches of some milliseconds each.
  const searched = `X = (16,2,3,2,9,9):(-1,1,16,16,5,1000)\n${"A = right_inverse(X)\n".repeat(2000)}A`;
  await typed(page, searched);
  await page.waitForFunction(() => document.getElementById("wrong").textContent.includes("stopped after 4 seconds"));
  await typed(page, "8:1");
  await shows("8:1");
  await page.click("#close");
  clean();
});

test("a kernel: its plan, check, cost and text", async () => {
  await page.click("#add-kernel");
  await page.waitForSelector("#kernel-pane table");
  assert.match(await page.locator("#kernel-pane").innerText(), /shared/);
  // Its program, with operands, tiles and threads, and what these are.
  const statements = page.locator("#kernel-pane pre");
  assert.match(await statements.innerText(), /load source\[[^\]]*\] to registers: .*threads/);
  assert.match(await page.locator("#kernel-pane").innerText(), /those of block \(0,0,0\)/);
  await page.locator("#kernel label:has(> span:text-is(\"M\")) input").fill("40");
  await page.locator("#kernel label:has(> span:text-is(\"N\")) input").fill("24");
  await page.getByRole("tab", { name: "Check on the interpreter" }).click();
  await page.waitForSelector("#kernel-pane .good");
  assert.match(await page.locator("#kernel-pane").innerText(), /960 elements compared/);
  await page.getByRole("tab", { name: "Cost" }).click();
  await page.waitForFunction(() => document.querySelector("#kernel-pane pre")?.textContent.includes("registers"));
  await page.getByRole("tab", { name: "PTX" }).click();
  await page.waitForFunction(() => document.querySelector("#kernel-pane pre")?.textContent.includes(".visible .entry"));
  await page.locator("#kernel label:has(> span:text-is(\"M\")) input").fill("999999999999");
  await page.getByRole("tab", { name: "Check on the interpreter" }).click();
  await page.waitForSelector("#kernel-pane .wrong");
  await page.locator("#kernel label:has(> span:text-is(\"M\")) input").fill("64");
  await page.getByRole("tab", { name: "Plan and tensors" }).click();
  await page.waitForSelector("#kernel-pane table");
  await page.locator("#kernel-pane button").first().click();
  await page.waitForFunction(() => !document.getElementById("program").hidden);
  await page.click("#close");
  // What a plan names can be looked at: an instruction, threads and values, tensors at these sizes.
  const plans = { product: "k-tiles of 128 bytes", tiled_add: "threads and values" };
  const look = async (kernel, name, sees) => {
    await page.getByRole("combobox", { name: "Kernel" }).selectOption(kernel);
    // Until then the plan of the kernel before is there, which may name the same.
    await page.waitForFunction((plan) => document.getElementById("kernel-pane").textContent.includes(plan), plans[kernel]);
    assert.equal(await page.locator("#tabs [aria-selected=true]").innerText(), `kernel ${kernel}`);
    await page.getByRole("button", { name }).click();
    await sees();
    await page.click("#close");
    await page.waitForSelector("#kernel-pane table");
  };
  await look("product", "Look at SM80_16x8x16_F32BF16BF16F32_TN of product", () => page.waitForFunction(() => document.getElementById("kind").textContent === "matrix instruction"));
  await look("tiled_add", "Look at threads and values of tiled_add", () => page.waitForFunction(() => document.querySelector("#stage .picture").shadowRoot.querySelector("svg") && document.getElementById("value").textContent === "((64,4),4):((16,1),4)"));
  await look("product", "Look at the layout of b", () => shows("(136,88):(88,1)"));
  await page.click("#close");
  clean();
});

test("PTX of a compiler: what is found, what its lines cost, as a link", async () => {
  const text = readFileSync(new URL("../../crates/cli/tests/cmd/sanitize.in/transpose.ptx", import.meta.url), "utf8");
  await page.click("#add-ptx");
  await page.waitForFunction(() => document.getElementById("ptx-pane").textContent.includes("Paste a text"));
  await page.fill("#ptx-text", text);
  await page.waitForFunction(() => document.getElementById("ptx-pane").textContent.includes("arguments are missing"));
  const labelled = (name) => page.locator(`#ptx label:has(> span:text-is("${name}")) input`);
  await labelled("Grid").fill("2,2");
  await labelled("Block").fill("32,32");
  await page.fill("#ptx-arguments", "in:f32[64,64]\nout:f32[64,64]");
  await page.waitForSelector("#ptx-pane .good");
  assert.match(await page.locator("#ptx-pane pre").innerText(), /4,096 \(128\)/);
  await page.fill("#ptx-arguments", "in:f32[64,64]\nout:f32[64,32]");
  await page.waitForFunction(() => document.getElementById("ptx-pane").textContent.includes("E1010"));
  await labelled("Grid").fill("two");
  await page.waitForFunction(() => document.getElementById("ptx-pane").textContent.includes("up to three numbers"));
  await labelled("Grid").fill("2,2");
  await page.waitForFunction(() => document.getElementById("ptx-pane").textContent.includes("E1010"));
  // Nothing sticks out, and a tab of a link holds the text.
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)) <= 0);
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(found.violations.map((one) => one.id), []);
  await page.waitForFunction(() => location.hash.startsWith("#v1."));
  const address = await page.evaluate(() => location.href);
  const other = await opened(context);
  await other.page.goto(address);
  await other.page.waitForFunction(() => document.getElementById("ptx-pane")?.textContent.includes("E1010"));
  assert.deepEqual(other.wrong, []);
  await other.page.close();
  await page.click("#close");
  clean();
});

test("a kernel statement by statement: forward, back, by threads, as a link", async () => {
  await page.click("#add-kernel");
  await page.locator("#kernel label:has(> span:text-is(\"M\")) input").fill("40");
  await page.locator("#kernel label:has(> span:text-is(\"N\")) input").fill("24");
  await page.getByRole("tab", { name: "Step by step" }).click();
  await page.waitForSelector(".trail .step");
  const at = (step) => page.waitForFunction((wanted) => document.querySelector(".where").textContent.startsWith(`step ${wanted} of`), step);
  // Warps may stand at several lines in one step.
  const lit = async () => (await page.locator(".source .line.lit").allInnerTexts()).join("\n");
  await at(0);
  assert.equal(await page.locator("[data-step=back]").isDisabled(), true);
  assert.match(await page.locator(".now").innerText(), /Before the first statement/);
  // Forward to what reads the matrix; the line that does it is marked.
  await page.getByRole("button", { name: "Next access to memory" }).click();
  await page.waitForSelector(".now .told");
  const step = Number((await page.locator(".where").innerText()).split(" ")[1]);
  assert.match(await lit(), /load/);
  assert.match(await page.locator(".now .told").innerText(), /threads read \d+ bytes of source in global memory/);
  assert.equal(await page.locator(".trail [aria-current=step]").getAttribute("data-at"), String(step));
  // A click on an element shows its thread alone in all tensors, and its registers.
  await page.locator(".now .global [data-t='3']").first().click();
  await page.waitForFunction(() => document.querySelector(".now").textContent.includes("Registers that thread 3 wrote"));
  await page.locator(".now .global [data-t='3']").first().hover();
  assert.match(await page.locator(".pointed").innerText(), /source\(\d+,\d+\): -?[\d.]+, at byte \d+, read by thread 3/);
  const loaded = await page.locator("[aria-label='Registers of a thread'] tbody").first().innerText();
  assert.match(loaded, /load\s+f32\s+-?[\d.]+/);
  // What is written to shared memory is outlined, and its banks are drawn.
  while (!(await page.locator(".now .told").innerText()).includes("shared memory")) {
    const before = await page.locator(".where").innerText();
    await page.getByRole("button", { name: "Next access to memory" }).click();
    await page.waitForFunction((before) => document.querySelector(".where").textContent !== before, before);
  }
  assert.match(await page.locator("[aria-label=Wavefronts]").innerText(), /warp 0, shared\d: \d+ wavefront/);
  await page.getByRole("button", { name: "Back" }).click();
  const back = Number(await page.locator(".trail [aria-current=step]").getAttribute("data-at"));
  await at(back);
  await page.locator(".trail [aria-current=step]").focus();
  await page.keyboard.press("ArrowDown");
  await at(back + 1);
  // As a whole; then the link holds where one stands.
  await page.locator(".steps label:has(> span:text-is(\"Tensors\")) select").selectOption("whole");
  await page.waitForFunction(() => document.querySelector(".now figure .picture").shadowRoot.querySelector("image"));
  await page.click("#link");
  await page.waitForFunction(() => !document.getElementById("notice").hidden);
  const address = await page.evaluate(() => navigator.clipboard.readText());
  const other = await opened(context);
  await other.page.goto(address);
  await other.page.waitForFunction((wanted) => document.querySelector(".where")?.textContent.startsWith(`step ${wanted} of`), back + 1);
  assert.match(await other.page.locator(".now").innerText(), /thread 3 wrote/);
  await other.page.goto("about:blank");
  await other.page.goto(`${server.address}#kernel=product&pane=steps&access=1`);
  await other.page.waitForFunction(() => document.querySelector(".source .line.lit")?.textContent.includes("copy_predicated"));
  for (const [fragment, said] of Object.entries({ "kernel=product&size=3": /says size/, "kernel=product&pane=loud": /the pane is none of/, "p=4&colour=red": /no field colour/, "p=4&width=wide": /whole number/ })) {
    await other.page.goto("about:blank");
    await other.go(`${server.address}#${fragment}`);
    await other.page.waitForFunction(() => !document.getElementById("notice").hidden);
    assert.match(await other.page.locator("#notice").innerText(), said);
  }
  assert.deepEqual(other.wrong, []);
  await other.page.close();
  await page.click("#close");
  clean();
});

test("the gallery opens worked problems and instructions", async () => {
  await page.click("#gallery");
  await page.getByLabel("Search the gallery").fill("bank conflict");
  await page.locator(".card").first().click();
  await page.waitForFunction(() => document.getElementById("told").textContent.includes("32-way"));
  await page.click("#gallery");
  await page.getByLabel("Search the gallery").fill("kernels transposition");
  await page.locator(".card").first().click();
  await page.waitForFunction(() => document.querySelector(".source .line.lit"));
  await page.click("#close");
  await page.click("#gallery");
  await page.getByLabel("Search the gallery").fill("book sixteen threads");
  await page.locator(".card").first().click();
  await page.waitForFunction(() => document.getElementById("kind").textContent === "copy instruction");
  await page.click("#close");
  await page.click("#gallery");
  await page.getByLabel("Search the gallery").fill("function weak_complement");
  await page.locator(".card").first().click();
  await page.waitForFunction(() => document.getElementById("kind").textContent === "layout");
  await page.click("#close");
  await page.click("#gallery");
  await page.getByLabel("Search the gallery").fill("SM90 64x128x16 F32BF16BF16");
  await page.locator(".card").first().click();
  await page.waitForFunction(() => document.getElementById("kind").textContent === "matrix instruction");
  await page.click("#close");
  await page.click("#close");
  clean();
});

test("keys alone are enough", async () => {
  await fresh("(4,8):(8,1)");
  await page.locator("#tabs [aria-selected=true]").focus();
  const before = await page.locator("#tabs [aria-selected=true]").innerText();
  await page.keyboard.press("ArrowLeft");
  assert.notEqual(await page.locator("#tabs [aria-selected=true]").innerText(), before);
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#tabs [aria-selected=true]").innerText(), before);
  // What is undone is of this tab alone, whatever was typed in another.
  await page.locator(".cm-content").focus();
  for (let turn = 0; turn < 6; turn++) await page.keyboard.press("Control+z");
  assert.equal((await page.locator(".cm-content").innerText()).trim(), "");
  await page.keyboard.press("Control+y");
  assert.equal((await page.locator(".cm-content").innerText()).trim(), "(4,8):(8,1)");
  // Tab leaves the editor.
  await page.locator(".cm-content").focus();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "copy");
  await page.click("#close");
  clean();
});

test("axe finds nothing, narrow and in the dark; at night in three widths", async () => {
  const looks = process.env.LOOKS;
  const states = ["program", "error", "code", "derivation", "kernel", "steps", "product", "check", "explained", "gallery"];
  // Colours are the same in every width, so one shows the dark ones. With pictures, all are taken.
  const narrow = [["light", 390], ["dark", 1280]];
  const all = looks || process.env.NIGHTLY ? [["light", 1280], ["light", 800], ...narrow] : narrow;
  for (const [theme, width] of all) {
    await page.selectOption("#theme", theme);
    await page.setViewportSize({ width, height: 900 });
    for (const state of states) {
      if (state === "kernel" || state === "check") {
        await page.click("#add-kernel");
        await page.waitForSelector("#kernel-pane table");
        if (state === "check") {
          await page.getByRole("tab", { name: "Check on the interpreter" }).click();
          await page.waitForSelector("#kernel-pane .good");
        }
      } else if (state === "steps" || state === "product") {
        await page.click("#add-kernel");
        await page.waitForSelector("#kernel-pane table");
        await page.getByRole("combobox", { name: "Kernel" }).selectOption(state === "steps" ? "transpose" : "product");
        await page.getByRole("tab", { name: "Step by step" }).click();
        await page.waitForSelector(".trail .step");
        await page.getByRole("button", { name: "Next access to memory" }).click();
        await page.waitForSelector(".now .told");
      } else {
        await fresh(state === "error" || state === "explained" ? "(6,2):(1,7) o (3,2):(2,3)" : "zipped_divide((8,8):(8,1), [2:1;4:1])");
        await page.waitForSelector(state === "error" || state === "explained" ? "#wrong pre" : "#stage svg");
        if (state === "code") {
          await page.getByRole("tab", { name: "Code" }).click();
          await page.waitForFunction(() => document.querySelector("pre.code")?.textContent !== "");
        } else if (state === "derivation") {
          await page.getByRole("tab", { name: "Derivation" }).click();
          await page.waitForSelector("#detail .part pre");
        } else if (state === "gallery") await page.click("#gallery");
        else if (state === "explained") {
          await page.click("#wrong button");
          await page.waitForSelector("dialog.explained");
        }
      }
      // Nothing sticks out to the side.
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(over <= 0, `${state} at ${width} is ${over} pixels too wide`);
      if (looks) await page.screenshot({ path: join(looks, `${state}-${width}-${theme}.png`), fullPage: true });
      await page.evaluate(axe);
      const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      const told = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).join(" | ")}`);
      assert.deepEqual(told, [], `${state}, ${width}, ${theme}`);
      if (state === "gallery" || state === "explained") await page.keyboard.press("Escape");
      await page.click("#close");
    }
  }
  await page.selectOption("#theme", "auto");
  await page.setViewportSize({ width: 1280, height: 900 });
  clean();
});

test("without the network, what was loaded goes on", async () => {
  const other = await opened(context);
  await other.go(server.address);
  await other.page.waitForTimeout(100);
  await other.page.waitForFunction(() => performance.getEntriesByName(new URL("workshop.wasm", location.href).href).length > 0);
  await context.setOffline(true);
  await typed(other.page, "(3,5):(5,1)");
  await other.page.waitForFunction(() => document.getElementById("value").textContent === "(3,5):(5,1)");
  const [file] = await Promise.all([other.page.waitForEvent("download"), other.page.click("[data-format=png]")]);
  assert.equal(readFileSync(await file.path()).subarray(1, 4).toString(), "PNG");
  await context.setOffline(false);
  await other.page.close();
  clean();
});

test("an engine that cannot be loaded is told", async () => {
  const other = await context.newPage();
  await other.route("**/engine.wasm", (route) => route.fulfill({ status: 404, body: "" }));
  await other.goto(server.address);
  await other.waitForFunction(() => document.getElementById("notice").textContent.includes("engine.wasm cannot be loaded: 404"));
  await other.close();
});

test("one file works from disk, and asks for nothing", async () => {
  const other = await opened(context);
  const asked = [];
  other.page.on("request", (request) => asked.push(request.url()));
  await other.go(`file://${join(folder, "playground.html")}`);
  await typed(other.page, "(3,5):(5,1)");
  await other.page.waitForFunction(() => document.getElementById("value").textContent === "(3,5):(5,1)");
  const [file] = await Promise.all([other.page.waitForEvent("download"), other.page.click("[data-format=pdf]")]);
  const bytes = readFileSync(await file.path());
  assert.equal(bytes.subarray(0, 4).toString(), "%PDF");
  await other.page.click("#link");
  await other.page.waitForFunction(() => location.hash.startsWith("#v1."));
  const link = other.page.url();
  await other.page.goto("about:blank");
  await other.go(link);
  await other.page.waitForFunction(() => document.getElementById("value").textContent === "(3,5):(5,1)");
  assert.deepEqual(asked.filter((address) => !/^(file|blob|data|about):/.test(address)), []);
  assert.deepEqual(other.wrong, []);
  await other.page.close();
});

test("times", async () => {
  const cold = await chrome.newContext();
  const other = await opened(cold);
  const began = performance.now();
  await other.go(server.address);
  const first = performance.now() - began;
  const keys = [];
  for (const source of ["(4,8):(8,1)", "(8,8):(8,1)", "(16,16):(16,1)", "zipped_divide((16,32):(32,1), [4:1;8:1])", "(32,32):(32,1)"]) {
    for (let turn = 0; turn < 3; turn++) {
      await other.page.evaluate(() => delete document.documentElement.dataset.answered);
      await typed(other.page, `${source}${" ".repeat(turn)}`);
      await other.page.waitForFunction(() => document.documentElement.dataset.answered !== undefined);
      keys.push(Number(await other.page.evaluate(() => document.documentElement.dataset.answered)));
    }
  }
  keys.sort((a, b) => a - b);
  console.log(`first answer on a cold load ${first.toFixed(0)} ms; a key stroke: median ${keys[7]} ms, worst ${keys.at(-1)} ms of ${keys.length}`);
  await cold.close();
});
