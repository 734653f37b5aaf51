// What the tests share: the built page behind a server of this machine, and a browser.

import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { chromium } from "playwright-core";

export const folder = process.env.PLAYGROUND ?? new URL("../../target/playground/site", import.meta.url).pathname;

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };

// Serves the folder; `address` ends in a slash.
export async function served() {
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://here").pathname;
    const file = join(folder, path === "/" ? "index.html" : path);
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
    return createReadStream(file).pipe(response);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { address: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

export async function browser() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath, args: ["--no-sandbox", ...quiet] });
}

// A page whose errors are kept; `go` opens an address and waits for the first answer.
export async function opened(context) {
  const page = await context.newPage();
  // A machine that does something else at the same time is slow.
  page.setDefaultTimeout(120_000);
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => {
    const text = message.text();
    if (message.type() === "error" && !text.startsWith("Applying inline style violates")) wrong.push(text);
  });
  // Where text with colours is replaced, the browser itself tries to keep its look by styles in the
  // editor, and the policy refuses that. Any other refusal is wrong.
  await page.exposeFunction("refused", (text) => wrong.push(text));
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => {
      if (event.violatedDirective === "style-src-attr" && event.target.id === "editor") return;
      window.refused(`${event.violatedDirective} at ${event.target.id ?? event.target}: Content Security Policy`);
    });
  });
  const go = async (address) => {
    await page.goto(address);
    await page.waitForFunction(() => document.documentElement.dataset.answered !== undefined);
  };
  return { page, wrong, go };
}

// Puts a program in the place of the one that is there, as a paste does.
export async function typed(page, text) {
  await page.locator(".cm-content").focus();
  await page.keyboard.press("Control+a");
  if (text === "") await page.keyboard.press("Delete");
  else await page.keyboard.insertText(text);
}
