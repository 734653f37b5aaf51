// What the engine answers is what the command answers, byte for byte.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { build } from "esbuild";

import { folder } from "./served.mjs";

const root = new URL("../../", import.meta.url).pathname;
const command = process.env.TILEWRIGHT ?? `${root}target/release/tilewright`;
const beside = { skip: existsSync(command) ? false : `there is no command at ${command}` };
let ask;
let bundle;

before(async () => {
  const site = new URL("../site/", import.meta.url).pathname;
  const load = async (entry) => {
    const made = await build({ entryPoints: [site + entry], bundle: true, format: "esm", write: false });
    return import(`data:text/javascript,${encodeURIComponent(made.outputFiles[0].text)}`);
  };
  const { run } = await load("wasi.ts");
  bundle = load;
  const modules = {};
  for (const name of ["engine", "workshop"]) modules[name] = new WebAssembly.Module(readFileSync(join(folder, `${name}.wasm`)));
  ask = (question, name = "engine") => {
    const text = typeof question === "string" ? question : JSON.stringify(question);
    const outcome = run(modules[name], new TextEncoder().encode(text));
    assert.ok(outcome.ended, `${text.slice(0, 200)}: ${outcome.said}`);
    return outcome.answer;
  };
});

const object = (question, name) => JSON.parse(Buffer.from(ask(question, name)).toString());

test("values and refusals of the conformance files", beside, () => {
  const files = join(root, "crates/notation/tests/conformance");
  const lines = readdirSync(files).filter((name) => name.endsWith(".tsv"))
    .flatMap((name) => readFileSync(join(files, name), "utf8").split("\n"))
    .map((line) => line.split("\t")[0]).filter((line) => line.trim() !== "" && !line.startsWith("#"));
  // Every seventh keeps the test short; scripts/wasm32 has them all.
  const chosen = [...lines.filter((_, at) => at % 7 === 0), "4294967297:1", "(4,4):(4294967296,1)", "size((4294967296,2))"];
  const { stdout } = spawnSync(command, ["eval", "--json", "-"], { input: `${chosen.join("\n")}\n`, maxBuffer: 1 << 28 });
  const wanted = stdout.toString().trimEnd().split("\n");
  assert.equal(wanted.length, chosen.length);
  chosen.forEach((source, at) => {
    const here = JSON.parse(wanted[at]);
    const there = object({ ask: "program", source });
    if (here.error) {
      const plain = ({ code, message, start, end, help }) => ({ code, message, start, end, help });
      assert.deepEqual(plain(there.error ?? {}), plain(here.error), source);
    } else {
      assert.equal(there.text, here.text, source);
      assert.equal(there.kind, here.kind, source);
    }
  });
  console.log(`${chosen.length} programs have the same answer`);
});

test("pictures in every format", beside, () => {
  const work = mkdtempSync(join(tmpdir(), "pictures-"));
  const cases = [
    ["(4,8):(8,1)", {}, []],
    ["zipped_divide((8,8):(8,1), [2:1;4:1])", {}, []],
    ["(6,2):(8,2) o (4,3):(3,1)", {}, []],
    ["S<3,3,3> o 0 o (8,64):(64,1)", { "element-bits": 32 }, ["--element-bits", "32"]],
    ["((4,8),(2,2)):((32,1),(16,8))", { tile: "(16,8)", palette: "warp" }, ["--tile", "(16,8)", "--palette", "warp"]],
    ["SM80_16x8x16_F32F16F16F32_TN", { atoms: "(2,2)" }, ["--atoms", "(2,2)"]],
    ["SM75_U32x4_LDSM_N", {}, []],
    ["(8,8):(8,1)", { slice: ["(2,_)", "(_,5)"], title: "<b>&" }, ["--slice", "(2,_)", "--slice", "(_,5)", "--title", "<b>&"]],
    ["((2,2),3):((6,1),2)", { kind: "span" }, ["--kind", "span"]],
    ["(1024,1024):(1024,1)", { shade: "heat" }, ["--shade", "heat"]],
    ["(4,3):(1,6)", { kind: "memory", width: 8 }, ["--kind", "memory", "--width", "8"]],
  ];
  for (const [source, view, options] of cases) {
    for (const format of ["svg", "html", "tex", "txt", "png", "pdf"]) {
      const file = join(work, `picture.${format}`);
      execFileSync(command, ["draw", source, ...options, "-o", file]);
      const there = Buffer.from(ask({ ask: "file", source, view, format }, "workshop"));
      assert.ok(there.equals(readFileSync(file)), `${source} as ${format} is not what the command writes`);
      if (format === "svg") assert.equal(object({ ask: "program", source, view }).picture, there.toString(), source);
    }
  }
  console.log(`${cases.length} pictures are the command's in 6 formats, byte for byte`);
});

test("notes beside answers, and the pictures of banks and sectors", beside, () => {
  const sources = [
    "(4,8):(8,1)(9,9)", "tile_to_shape((8,8):(8,1),(4,64))", "logical_product((4,4),(2,2))",
    "local_tile((10,64):(64,1),(16,32),(7,_))", "(4,8):(8,1)", "x = (4,8):(8,1); x(40)", "Sw<3,4,3> o smem_ptr o (8,64):(64,1)",
  ];
  let noted = 0;
  for (const source of sources) {
    const there = JSON.parse(spawnSync(command, ["eval", "--json", source]).stdout.toString());
    assert.deepEqual(object({ ask: "program", source }).notes ?? [], there.notes ?? [], source);
    noted += there.notes?.length ?? 0;
  }
  assert.ok(noted >= 4, `${noted} notes`);

  const work = mkdtempSync(join(tmpdir(), "banks-"));
  // The page names its program as the source, besides the accesses.
  const bare = (svg) => svg.replace(/<!--.*?-->\n?/gs, "");
  for (const [layout, kind, view, options] of [
    ["S<3,4,3> o 0 o (8,64):(64,1)", "banks", { vector: 8 }, ["--vector", "8"]],
    ["(32,32):(32,1)", "banks", { "element-bits": 32, access: ["columns"] }, ["--width", "32", "--access", "columns"]],
    ["(32,32):(32,1)", "banks", { "element-bits": 32, access: ["columns", "rows"], phase: 1 }, ["--width", "32", "--access", "columns", "--access", "rows", "--phase", "1"]],
    ["(64,64):(64,1)", "sectors", { access: ["columns"] }, ["--access", "columns"]],
  ]) {
    const file = join(work, "picture.svg");
    const name = kind === "banks" ? "banks" : "access";
    const { status, stderr } = spawnSync(command, [name, layout, ...(view["element-bits"] ? [] : ["--width", "16"]), ...options, "-o", file]);
    assert.equal(status, 0, stderr.toString());
    const here = object({ ask: "program", source: layout, view: { ...view, kind } }, "workshop");
    assert.ok(bare(here.picture) === bare(readFileSync(file).toString()), `${kind} of ${layout} is not what the command draws`);
    const told = spawnSync(command, [name, layout, ...(view["element-bits"] ? [] : ["--width", "16"]), ...options]);
    const said = told.stderr.toString().split("\n").filter((line) => line.startsWith("note: ")).map((line) => line.slice(6));
    assert.deepEqual(here.notes, said, layout);
  }
});

test("texts of other systems are read, and what they leave open is asked", () => {
  const pasted = (source, view = {}) => object({ ask: "program", source, view }, "workshop");
  const swizzled = "sA:\tSw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)";
  const found = pasted(swizzled);
  // The page shows the text as this program would be shown, with notes about what was converted.
  const own = pasted("S<3,3,3> o 0 o (8,64):(64,1)");
  assert.equal(found.text, "S<3,3,3> o 0 o (8,64):(64,1)");
  assert.equal(found.picture, own.picture);
  assert.deepEqual(found.table, own.table);
  assert.match(found.notes.join("\n"), /acts on byte addresses; on elements of 16 bits it is S<3,3,3>/);
  // The width of the text is the one with which banks are counted.
  const bits = (source, view) => pasted(source, view).table.rows.map((row) => row[3]);
  const wide = "gmem_ptr[32b](0x7f00) o (_4,_8):(_8,_1)";
  assert.deepEqual(bits(wide), bits("(4,8):(8,1)", { "element-bits": 32 }));
  assert.notDeepEqual(bits(wide), bits("(4,8):(8,1)"));
  // Files, code and derivations are those of the program.
  const drawn = (source) => Buffer.from(ask({ ask: "file", source, format: "svg" }, "workshop")).toString();
  assert.equal(drawn(swizzled), drawn("S<3,3,3> o 0 o (8,64):(64,1)"));
  const code = (source) => object({ ask: "code", source }, "workshop").code;
  assert.equal(code("(_4,_8):(_8,_1)"), code("(4,8):(8,1)"));
  assert.equal(object({ ask: "derivation", source: swizzled }, "workshop").text, found.text);

  const open = "!cute.ptr<!my.type, smem, align<1024>, S<3,4,3>>";
  const { error } = pasted(open);
  assert.equal(error.code, "E1305");
  assert.match(error.message, /how wide is !my\.type\?/);
  assert.match(error.help, /in a line above the text: # bits: 16/);
  assert.equal(pasted(`# bits: 16\n${open}`).text, "S<3,3,3>");
  assert.match(pasted(`# bits: x\n${open}`).error.message, /no width of an element/);

  // A build that failed: what the algebra refuses as well, and what it can do.
  const log = (name) => pasted(readFileSync(join(root, `crates/read/tests/logs/${name}.log`), "utf8"));
  assert.equal(log("nvcc-divide").error.code, "E0111");
  assert.match(log("nvcc-divide").error.message, /^zipped_divide failed, called at errs\.cu:7: A = \(4,6\):\(1,10\)/);
  assert.equal(log("nvcc-composition").text, "(2,3):(9,1)");
  assert.match(log("nvcc-composition").notes[0], /^composition failed, called at errs\.cu:4/);
  // The engine with which the page begins reads none of them, and a program that is wrong stays so.
  assert.match(object({ ask: "program", source: open }).error.code, /^E02/);
  assert.equal(pasted("(4,8):(8,").error.code, object({ ask: "program", source: "(4,8):(8," }).error.code);
});

test("every question has a line that answers it, and the first of several layouts is shown", () => {
  const pasted = (source) => object({ ask: "program", source }, "workshop");
  const blocked = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>";
  for (const [source, asked, answers, kind, shown] of [
    [blocked, "# shape: (128,64)", "# shape: (64,32)", "linear layout", /^register=\[\(0,1\),/],
    ["PartitionSpec('tp', None)", "# mesh: dp=2:4,tp=4:1", "# mesh: dp=2:4,tp=4:1\n# shape: (8,6)", "sharded tensor", /tp/],
    ["shape=(4, 8), strides=(64, 8)", "`# system:` and one of numpy, torch", "# system: torch", "layout", /^\(4,8\):\(64,8\)$/],
  ]) {
    const { code, help } = pasted(source).error;
    assert.equal(code, "E1305", source);
    assert.ok(help.includes(asked), help);
    const found = pasted(`${answers}\n${source}`);
    assert.equal(found.kind, kind, source);
    assert.match(found.text, shown, source);
  }
  // An error is marked in the text below the answers.
  const cut = "cute::Layout<cute::tuple<cute::C<4>, cute::C<8>>, cute::tuple<cute::C<8>";
  const [alone, below] = [cut, `# bits: 16\n${cut}`].map((source) => pasted(source).error);
  assert.equal(below.start, alone.start + "# bits: 16\n".length);
  // What is refused as a program of its own notation is no text of another system.
  assert.equal(pasted("(4,8):(8,1,1)").error.code, "E0101");
  const several = pasted("a: (_4,_8):(_8,_1)\nb: (_2,_2):(_1,_2)\n");
  assert.equal(several.text, "(4,8):(8,1)");
  assert.ok(several.notes.includes("also in the text, line 2 b: (2,2):(1,2)"), several.notes.join("; "));
});

test("index arithmetic, PTX and derivations", beside, () => {
  const said = (...options) => execFileSync(command, options).toString();
  const source = "zipped_divide((M{div=128},K):(K,1), [128:1;64:1])";
  for (const lang of ["rust", "c", "cuda", "python", "triton"]) {
    assert.equal(object({ ask: "code", source, code: { lang } }, "workshop").code, said("emit", "--lang", lang, source));
  }
  const question = { ask: "kernel", name: "transpose", want: "ptx", target: "sm_80" };
  assert.equal(object(question, "workshop").ptx, said("kernel", "emit", "transpose"));
  const derived = object({ ask: "derivation", source: "logical_divide((4,6):(1,4), 4:2)" }, "workshop");
  assert.equal(derived.text, "(4,(2,3)):(2,(1,8))");
  assert.equal(derived.law.answer, "holds");
  const lines = derived.parts.flatMap((part) => [part.formula, ...part.lines]).join("\n");
  const told = said("explain", "--brief", "logical_divide((4,6):(1,4), 4:2)");
  for (const line of told.trim().split("\n")) assert.ok(lines.includes(line.trim()), line);
});

test("kernels: a check, a plan, a cost", () => {
  const of = (want, more = {}) => object({ ask: "kernel", name: "transpose", want, ...more }, "workshop");
  const checked = of("check", { sizes: [["M", 40], ["N", 24]] });
  assert.equal(checked.compared, 960);
  assert.equal(checked.worst, 0);
  assert.ok(of("plan").buffers.some((buffer) => buffer.shared));
  assert.match(of("cost", { target: "A100" }).text, /registers/);
  assert.match(of("check", { sizes: [["M", 100_000], ["N", 100_000]] }).error.message, /too long/);
  assert.match(of("plan", { sizes: [["X", 1]] }).error.message, /X/);
  assert.match(of("plan", { element: "f99" }).error.message, /f99/);
});

test("PTX: entries, findings, costs, and what is too much", () => {
  const folder = join(root, "crates/cli/tests/cmd/sanitize.in");
  const text = readFileSync(join(folder, "transpose.ptx"), "utf8");
  const of = (more = {}) => object({ ask: "ptx", launch: { text, grid: [2, 2, 1], block: [32, 32, 1], ...more } }, "workshop");
  const known = of();
  assert.deepEqual(known.entries.map((own) => [own.name, own.parameters.length]), [["transpose", 2]]);
  assert.equal(known.findings, undefined);
  const right = of({ arguments: ["in:f32[64,64]", "out:f32[64,64]"] });
  assert.deepEqual([right.findings, right.unfinished], [[], null]);
  assert.match(right.costs, /4,096 \(128\) +transpose.cu:6/);
  const small = of({ arguments: ["in:f32[64,64]", "out:f32[32,64]"] });
  assert.equal(small.findings[0].code, "E1010");
  assert.match(small.findings[0].message, /transpose.cu:6/);
  const racing = object({ ask: "ptx", launch: { text: text.replace(/bar.sync[^;]*;/, ""), grid: [2, 2, 1], block: [32, 32, 1], arguments: ["in:f32[64,64]", "out:f32[64,64]"] } }, "workshop");
  assert.ok(racing.findings.some((own) => own.code === "E1016"));
  for (const [more, why] of [
    [{ entry: "other" }, /no entry `other`/],
    [{ arguments: ["in:f32[64,64]"] }, /takes 2 arguments and was given 1/],
    [{ arguments: ["in:f32[99999999999,99999999999]", "out:f32[4]"] }, /more than 1048576 elements/],
    [{ arguments: ["hello", "out:f32[4]"] }, /are examples/],
    [{ block: [32, 33, 1], arguments: ["in:f32[64,64]", "out:f32[64,64]"] }, /threads/],
    [{ grid: [2048, 64, 1], arguments: ["in:f32[64,64]", "out:f32[64,64]"] }, undefined],
    [{ text: "nonsense" }, /PTX line 1/],
    [{ text: " ".repeat(1 << 19) }, /this page reads 262144/],
  ]) {
    const answer = of(more);
    if (why) assert.match(answer.error.message, why);
    else assert.ok(answer.findings.length > 0 || answer.unfinished, "it ends");
  }
});

const outline = (name, more = {}) => {
  const found = object({ ask: "kernel", name, want: "plan", ...more }, "workshop");
  assert.equal(found.error, undefined, name);
  return { ...found, lines: found.outline.map(([indent, text]) => `${"  ".repeat(indent)}${text}`) };
};
// The sides of a tile in a line: `a[0:128, 0:32]` is [128, 32].
const sides = (line, tensor) => {
  const ranges = new RegExp(`\\b${tensor}\\[([^\\]]*)\\]`).exec(line)?.[1];
  return ranges?.split(", ").map((range) => range.split(":").map(Number)).map(([from, to]) => (to === undefined ? 1 : to - from));
};
const product = (numbers) => numbers.reduce((a, b) => a * b, 1);

test("a kernel is a program that can be read: operands, tiles, threads", () => {
  // Each copy moves as many bytes as its threads take together: an element of bf16 has 2.
  const multiply = outline("product", { sizes: [["M", 256], ["N", 256], ["K", 128]] });
  const copies = multiply.lines.filter((line) => line.includes("cp.async ") && line.includes("bytes each"));
  assert.ok(copies.length >= 2);
  for (const line of copies) {
    const [, threads, times = "1", bytes] = /all (\d+) threads, (?:(\d+) x )?(\d+) bytes each/.exec(line) ?? assert.fail(line);
    const from = sides(line, /[ab](?=\[)/.exec(line)[0]);
    assert.equal(product(from) * 2, threads * times * bytes, line);
    // The stages of both operands are one area: its elements are counted where a tile has not all
    // of a range.
    assert.match(line, /to (\d+ elements of )?shared\d+\[/);
  }
  const warp = multiply.lines.find((line) => line.includes("mma "));
  // Fragments come from the area that holds the stages of both operands.
  assert.match(warp, /\d+ x mma 16x8x16 of a warp: accumulators \+= a and b x a and b$/);
  assert.ok(multiply.lines.some((line) => /store accumulators to /.test(line)), multiply.lines.join("\n"));
  assert.ok(multiply.lines.some((line) => /^ *for i1 in 0 \.\. K/.test(line)), multiply.lines.join("\n"));

  // On Hopper one warp loads boxes, and others multiply them.
  const hopper = outline("group_product").lines.join("\n");
  assert.match(hopper, /TMA load a\[0:64, 0:64\] to shared\d+\[0:64, 0:64, 0\], box 64 x 64, mbarrier \w+: thread \d+/);
  assert.match(hopper, /wgmma 64x16x16: accumulators \+= a in shared\d+\[0:64, 0:64, 0\] x b in shared\d+\[0:16, 0:64, 0\]: warps 0-3/);
  assert.match(hopper, /TMA store shared\d+\[0:64, 0:16\] to d\[0:64, 0:16\]/);
  // Barriers that are prepared one after the other stand once.
  assert.match(hopper, /\d+ times:\n +mbarrier \w+: init with 1 arrivals\n +mbarrier \w+: init with \d+ arrivals/);

  const soft = outline("softmax").lines.join("\n");
  for (const word of [/load x\[0:4, 0:1000\] to registers: all 128 threads, 3 x 16 bytes each/, /exp2 f32/, /shuffle x between the lanes of a warp/, /store x to y/]) {
    assert.match(soft, word);
  }
  // No line is a statement's name alone.
  for (const text of [hopper, soft, multiply.lines.join("\n")]) assert.doesNotMatch(text, /load_where|unless_less|clamped|\bwhere 1\b|4294967/);

  // Where a run takes too long for a page, the tiles are left out, and that is said.
  const large = outline("product", { sizes: [["M", 8192], ["N", 8192], ["K", 8192]] });
  assert.equal(large.tiles, false);
  assert.match(large.lines.join("\n"), /cp\.async a to shared\d+/);
});

test("every kernel of the library: planned, checked, counted, written", () => {
  const { kernels } = object({ ask: "kernels" }, "workshop");
  for (const { name } of kernels) {
    for (const want of ["plan", "check", "cost", "ptx"]) {
      const found = object({ ask: "kernel", name, want }, "workshop");
      assert.equal(found.error ?? found.findings, undefined, `${name}, ${want}`);
    }
  }
  console.log(`${kernels.length} kernels have a plan, pass their check, have a cost and a text`);
});

const stepped = (name, at = {}, more = {}) => object({ ask: "kernel", name, want: "steps", at, ...more }, "workshop");

test("a block step by step: what is copied, where, by whom", () => {
  const sizes = [["M", 40], ["N", 24]];
  const all = stepped("transpose", {}, { sizes });
  assert.ok(all.count > 5 && all.steps.length === all.count);
  assert.equal(all.registers.length, 0);
  const sum = (column) => all.steps.flat().reduce((total, line) => total + line[column], 0);
  // Each byte of the matrix is read and written, and between them goes through shared memory.
  const { grid } = all;
  let [read, written] = [0, 0];
  for (let x = 0; x < grid[0]; x++) {
    const { steps } = stepped("transpose", { block: [x, 0, 0] }, { sizes });
    for (const [, , from, to] of steps.flat()) {
      read += from;
      written += to;
    }
  }
  assert.ok(read >= 2 * 40 * 24 * 4, `${read} bytes from the source and from shared memory`);
  assert.ok(written >= 2 * 40 * 24 * 4, `${written} bytes`);
  assert.ok(sum(4) >= sum(5) && sum(5) > 0, "wavefronts");
  // At the last step the destination has been written: its values are those of the source, turned.
  const end = stepped("transpose", { step: all.count }, { sizes });
  assert.match(end.told.join(), /threads? writes? \d+ bytes of destination in global memory/);
  const texts = (name, found) => {
    const svg = found.pictures.find((one) => one.name === name)?.svg ?? "";
    return new Map([...svg.matchAll(/<title>\w+\((\d+),(\d+)\): ([^,<]+), at byte (\d+)/g)].map(([, row, column, value, byte]) => [`${row},${column}`, [value, Number(byte)]]));
  };
  // What the last step writes was read in steps before, each of which shows what it touches.
  const seen = all.steps.map((_, at) => [...texts("source", stepped("transpose", { step: at + 1 }, { sizes }))]);
  const [source, destination] = [new Map(seen.flat()), texts("destination", end)];
  let compared = 0;
  for (const [at, [value, byte]] of destination) {
    if (value === "not written yet") continue;
    const [row, column] = at.split(",").map(Number);
    assert.deepEqual(source.get(at), [value, 4 * (24 * row + column)], at);
    assert.equal(byte, 4 * (row + 40 * column), at);
    compared++;
  }
  assert.ok(compared > 100, `${compared} elements compared`);
});

test("a block step by step: statements, registers, banks", () => {
  const all = stepped("product");
  const find = (name) => 1 + all.steps.findIndex((lines) => lines.some(([statement, , read, written]) => all.statements[statement][0] === name && (name === "mma" || read + written > 0)));
  const copy = stepped("product", { step: find("copy_predicated"), thread: 5 });
  const [excerpt] = copy.code;
  assert.equal(excerpt.file, "crates/planners/src/gemm/mainloop/warps.rs");
  assert.match(excerpt.lines[excerpt.line - excerpt.first], /copy_predicated/);
  // One statement copies both operands.
  assert.deepEqual(copy.pictures.filter((one) => one.touched).map((one) => one.what), ["global", "global", "shared"]);
  // An asynchronous copy is on its way until it is waited for, and there at once where it is early.
  const values = (found) => found.pictures.find((one) => one.what === "shared" && one.touched).svg;
  assert.match(values(copy), /not written yet/);
  assert.doesNotMatch(values(stepped("product", { step: copy.step, early: true })), /not written yet.*written by thread/);
  assert.match(values(copy), /written by thread 5\b/);
  const mma = stepped("product", { step: find("mma"), thread: 5 });
  assert.equal(mma.pictures[0].name, "SM80_16x8x16_F32BF16BF16F32_TN");
  assert.ok(mma.registers.every(([, operation, type, value]) => operation === "multiply bf16f32" && type === "f32" && Number.isFinite(Number(value))));
  // Wavefronts of all accesses together are those of the step, and the banks of one are drawn.
  for (let step = 1; step <= all.count; step++) {
    const lines = all.steps[step - 1];
    const waves = lines.reduce((total, line) => total + line[4], 0);
    if (waves === 0) continue;
    const here = stepped("product", { step });
    assert.equal(here.requests.reduce((total, one) => total + one[3], 0), waves, `step ${step}`);
    assert.match(here.banks.svg, /wavefront/);
  }
  const second = stepped("product", { step: find("copy_predicated"), request: copy.requests[1][0] });
  assert.equal(second.banks.request, copy.requests[1][0]);
});

test("every kernel, step by step", () => {
  const { kernels } = object({ ask: "kernels" }, "workshop");
  let steps = 0;
  for (const { name } of kernels) {
    const all = stepped(name);
    assert.equal(all.error ?? all.findings, null, name);
    for (const step of [1, all.count >> 1, all.count]) {
      for (const whole of [false, true]) {
        const found = stepped(name, { step, whole });
        assert.equal(found.error, undefined, `${name}, ${step}`);
        assert.ok(found.pictures.every((one) => one.svg.startsWith("<svg")), name);
        // Statements are written in the library of kernels, or in what it calls.
        assert.ok(found.code.length > 0 || all.statements.every(([, place]) => place.startsWith("crates/")), name);
      }
    }
    steps += all.count;
  }
  console.log(`${kernels.length} kernels take ${steps} steps in their first blocks`);
  for (const [at, said] of [[{ step: 1e6 }, /no step/], [{ access: 1e6 }, /no access/], [{ access: 0 }, /no access/], [{ thread: 4096 }, /no thread/], [{ block: [999, 0, 0] }, /none at/], [{ blocks: 1 }, /blocks/], [{ step: -1 }, /-1/]]) {
    assert.match(stepped("transpose", at).error.message, said);
  }
  assert.match(stepped("transpose", {}, { sizes: [["M", 100_000], ["N", 100_000]] }).error.message, /too long/);
});

test("the book's links are read and answered, and their pictures are the book's", async () => {
  const { read } = await bundle("state.ts");
  const book = join(root, "docs/book/src");
  const drawn = (svg) => svg.replace(/<!--.*?-->\n/g, "");
  let [links, pictures] = [0, 0];
  for (const name of readdirSync(book).filter((name) => name.endsWith(".md"))) {
    const page = readFileSync(join(book, name), "utf8");
    for (const [line, fragment] of page.matchAll(/\(playground\/index\.html(#[^)]*)\)/g)) {
      const { tabs } = await read(fragment);
      if (tabs[0].type === "kernel") {
        assert.ok(stepped(tabs[0].kernel, tabs[0].at).told.length > 0, line);
        links++;
        continue;
      }
      const { source, view } = tabs[0];
      const asks = ["banks", "sectors", "suggest"].includes(view.kind) ? "workshop" : "engine";
      let found = object({ ask: "program", source, view }, asks);
      // As the page does: what is no program may be a text of another system.
      if (found.error?.code?.startsWith("E02")) found = object({ ask: "program", source, view }, "workshop");
      links++;
      // The page of errors has programs that are refused, and so has the text about refusals.
      assert.ok(found.text ?? found.error?.code, `${name}: ${line}`);
      if (found.error && name !== "errors.md") assert.ok(page.includes(found.error.code), `${name}: ${line}: ${found.error.message}`);
      const shown = page.slice(0, page.indexOf(line)).match(/!\[[^\]]*\]\(pictures\/([\w.-]+)\)\n\n\[[^\]]*\]$/);
      if (!shown) continue;
      const file = readFileSync(join(book, "pictures", shown[1]), "utf8");
      // Two programs side by side are one list here; a picture of banks shows one of its phases.
      if (source.startsWith("((4,6):(6,1), ") || view.kind === "banks") assert.ok(found.picture.startsWith("<svg"));
      // The comments of a file say what was drawn, in the words of the one who asked.
      else assert.equal(drawn(found.picture), drawn(file), `${name}: ${shown[1]}`);
      pictures++;
    }
  }
  console.log(`${links} links of the book are answered; ${pictures} stand below a picture and draw it`);
  assert.ok(links > 100 && pictures > 20);
});

test("a check and a cost are the command's", beside, () => {
  const said = (...options) => JSON.parse(execFileSync(command, ["kernel", ...options, "--json"]).toString());
  for (const name of ["transpose", "product", "softmax"]) {
    const [here, there] = [said("check", name), object({ ask: "kernel", name, want: "check" }, "workshop")];
    for (const field of ["schedules", "instructions", "compared", "worst"]) assert.equal(there[field], here[field], `${name}: ${field}`);
    assert.deepEqual(Object.fromEntries(there.executed), here.executed, name);
    const counts = ({ statement, requests, bytes, sectors, wavefronts }) => ({ statement, requests, bytes, sectors, wavefronts });
    assert.deepEqual(there.accesses.map(counts), here.accesses.map(counts), name);
  }
  const text = execFileSync(command, ["kernel", "cost", "softmax", "M=64", "N=512"]).toString();
  assert.ok(text.endsWith(object({ ask: "kernel", name: "softmax", sizes: [["M", 64], ["N", 512]], want: "cost" }, "workshop").text));
});

test("the command serves the page, to its own machine alone", beside, async () => {
  const file = join(folder, "playground.html");
  const server = spawn(command, ["playground", "--page", file, "--no-open", "--json"]);
  try {
    const line = await new Promise((done) => server.stdout.once("data", done));
    const { address } = JSON.parse(line.toString());
    assert.match(address, /^http:\/\/127\.0\.0\.1:\d+\/$/);
    const response = await fetch(address);
    assert.ok(Buffer.from(await response.arrayBuffer()).equals(readFileSync(file)));
    assert.equal((await fetch(`${address}other`)).status, 404);
    assert.equal((await fetch(address, { method: "POST" })).status, 405);
    // A page elsewhere whose name was turned to this machine.
    const status = await new Promise((done, failed) => {
      request(address, { headers: { host: "elsewhere.example" } }, (response) => done(response.resume().statusCode)).on("error", failed).end();
    });
    assert.equal(status, 403);
  } finally {
    server.kill();
  }
  const work = mkdtempSync(join(tmpdir(), "page-"));
  execFileSync(command, ["playground", "--page", file, "-o", join(work, "page.html")]);
  assert.ok(readFileSync(join(work, "page.html")).equals(readFileSync(file)));
  const own = spawnSync(command, ["playground", "-o", join(work, "own.html")]);
  if (own.status === 0 && process.env.TILEWRIGHT_PLAYGROUND) assert.ok(readFileSync(join(work, "own.html")).equals(readFileSync(file)), "the page inside the command is another");
  if (own.status !== 0) assert.match(own.stderr.toString(), /no playground inside.*scripts\/playground/);
  const gone = spawnSync(command, ["playground", "--page", join(work, "gone.html"), "-o", join(work, "x.html")]);
  assert.equal(gone.status, 1);
  assert.match(gone.stderr.toString(), /gone\.html/);
});

test("what is no question is refused in words", () => {
  for (const question of ["", "{", "[]", '{"ask":"steal"}', '{"ask":"program"}', '{"ask":"program","source":"1","view":{"colour":"red"}}', '{"ask":"program","source":1}', `"${"x".repeat(1 << 20)}"`]) {
    assert.ok(object(question).error.message.length > 10, question.slice(0, 60));
  }
  for (const view of [{ "element-bits": 0 }, { "element-bits": -7 }, { width: 0 }, { palette: "loud" }, { kind: "mma" }, { kind: "swizzle" }, { kind: "composition" }, { slice: ["(("] }, { tiler: "[" }, { kind: "thread-value", tile: "(2,2)" }]) {
    const found = object({ ask: "program", source: "(4,8):(8,1)", view });
    assert.ok(found.unseen?.message.length > 5, JSON.stringify(view));
  }
  assert.equal(object({ ask: "program", source: "(".repeat(100_000) }).error.code, "E0209");
  assert.equal(object({ ask: "program", source: "(1099511627776,1024):(1024,1)" }).text, "(1099511627776,1024):(1024,1)");
});

test("every problem of the gallery has an answer and a picture", async () => {
  const { GALLERY, KERNELS } = await bundle("gallery.ts");
  const { read } = await bundle("state.ts");
  for (const { title, fragment } of KERNELS) {
    const { kernel, pane, at } = (await read(fragment)).tabs[0];
    const found = object({ ask: "kernel", name: kernel, want: pane, at }, "workshop");
    // Where a block is looked at, the step is one that touches memory.
    if (pane === "steps") assert.ok(found.told?.length > 0, title);
    else assert.ok(found.text, title);
  }
  const refused = [];
  for (const { section, problems } of GALLERY) {
    for (const { title, source, view = {} } of problems) {
      const pasted = section.startsWith("Pasted");
      const name = pasted || ["banks", "sectors", "suggest"].includes(view.kind) ? "workshop" : "engine";
      const found = object({ ask: "program", source, view }, name);
      if (pasted) assert.match(found.notes?.[0] ?? "", /^read as an? |^composition failed/, title);
      if (found.error || !found.picture) refused.push(`${title}: ${found.error?.code ?? found.unseen?.message}`);
    }
  }
  // Two of them show what has no answer, or no picture yet.
  assert.deepEqual(refused.sort(), [
    "A composition that does not exist: E0107",
    "Numbers known at launch: this is drawn once M is known: substitute(..., M, 64)",
  ]);
});

test("a sharded tensor has a picture of who holds what", () => {
  const source = "# shape: (8,6)\nNamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('tp', None))";
  const found = object({ ask: "program", source }, "workshop");
  assert.equal(found.kind, "sharded tensor");
  assert.match(found.notes[0], /^read as a sharded tensor \(JAX\), in elements$/);
  // Row r is held by devices r / 2 and r / 2 + 4, six elements each.
  for (let rank = 0; rank < 4; rank += 1) {
    assert.equal(found.picture.split(`>${rank} ${rank + 4}<`).length - 1, 12, `devices ${rank} and ${rank + 4}`);
  }
  const large = object({ ask: "program", source: source.replace("(8,6)", "(4096,4096)") }, "workshop");
  assert.match(large.unseen.message, /at most 16384 elements/);
  const banks = object({ ask: "program", source, view: { kind: "banks" } }, "workshop");
  assert.match(banks.unseen.message, /who holds what/);
  assert.match(object({ ask: "derivation", source }, "workshop").error.message, /nothing is derived/);
  assert.match(object({ ask: "program", source: source.split("\n")[1] }, "workshop").error.message, /depends on the shape/);
});

test("the gallery has pastes of many systems", async () => {
  const { GALLERY } = await bundle("gallery.ts");
  const { problems } = GALLERY.find(({ section }) => section.startsWith("Pasted"));
  const systems = new Set();
  for (const { source } of problems) {
    const [, system] = /^read as .* \(([^)]*)\)/.exec(object({ ask: "program", source }, "workshop").notes?.[0] ?? "") ?? [];
    if (system) systems.add(system);
  }
  assert.ok(problems.length >= 10 && systems.size >= 8, [...systems].join(", "));
});

test("the tour of the gallery is the command's tour", beside, async () => {
  const { GALLERY } = await bundle("gallery.ts");
  const { problems } = GALLERY.find(({ section }) => section.startsWith("The tour"));
  const tour = execFileSync(command, ["tour"]).toString();
  for (const { source, title } of problems.filter(({ source }) => source.includes("="))) {
    // Each line is one of the tour, and so is the value.
    for (const line of source.split("\n")) {
      const own = line.startsWith("plain =") ? "plain = (128,64):(64,1)" : line;
      assert.ok(tour.includes(own), `${title}: ${line}`);
    }
    const { text } = object({ ask: "program", source });
    if (title.startsWith("4. In shared memory, plain")) continue;
    assert.ok(tour.includes(text), `${title}: ${text}`);
  }
});

test("every instruction of the catalogue is drawn", () => {
  const { products, copies } = object({ ask: "catalogue" });
  const names = [...products, ...copies].map(([, , names]) => names[names.length >> 1]);
  const refused = names.filter((source) => {
    const found = object({ ask: "program", source });
    return found.error || !found.picture;
  });
  console.log(`${names.length} instructions, ${refused.length} without a picture at 16 bits`);
  assert.ok(names.length > 40);
  assert.ok(refused.length * 4 < names.length, refused.join(" "));
});
