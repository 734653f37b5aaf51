// Answers questions away from the page, one at a time.

import { run } from "./wasi";

type Message = { module: WebAssembly.Module } | { id: number; question: Uint8Array };

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<Message>) => void;
  postMessage: (message: unknown, transfer?: Transferable[]) => void;
};
let module: WebAssembly.Module | undefined;

scope.onmessage = ({ data }) => {
  if ("module" in data) {
    module = data.module;
    return;
  }
  if (!module) return;
  const outcome = run(module, data.question);
  scope.postMessage({ id: data.id, ...outcome }, [outcome.answer.buffer]);
};
