// Where the programs are: in files beside the page, or in the page itself.

import type { Assets } from "./engine";

async function unpacked(base64: string): Promise<Uint8Array<ArrayBuffer>> {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function compiled(name: string): Promise<WebAssembly.Module> {
  const inside = document.getElementById(`${name}-wasm`);
  if (inside) return WebAssembly.compile(await unpacked((inside.textContent ?? "").trim()));
  const response = await fetch(`${name}.wasm`);
  if (!response.ok) throw new Error(`${name}.wasm cannot be loaded: ${response.status} ${response.statusText}`);
  // Compiled as it comes, where the server says what it is.
  const told = response.headers.get("content-type") ?? "";
  return told.startsWith("application/wasm") ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

export function assets(): Assets {
  const known = new Map<string, Promise<WebAssembly.Module>>();
  // The worker's text is in the page, so that another worker can begin without the network.
  const source = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
  return {
    module(name) {
      let module = known.get(name);
      if (!module) {
        module = compiled(name);
        known.set(name, module);
        // What cannot be loaded now may be loaded later.
        module.catch(() => known.delete(name));
      }
      return module;
    },
    worker: () => new Worker(source),
  };
}
