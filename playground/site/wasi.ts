// Runs a program that was compiled for WebAssembly: a question goes to its standard input, and what
// it writes to standard output is the answer.
//
// Law: each run has memory of its own, and nothing else of the machine: no files, no clock, no
// chance. So an answer depends on the question alone.

const BAD_DESCRIPTOR = 8;
const NOT_SUPPORTED = 52;

class Exit extends Error {}

export interface Outcome {
  answer: Uint8Array<ArrayBuffer>;
  // What the program said on standard error: of a panic, where and why.
  said: string;
  // Whether it came to its end.
  ended: boolean;
}

function joined(pieces: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

export function run(module: WebAssembly.Module, question: Uint8Array): Outcome {
  let memory: WebAssembly.Memory | undefined;
  const view = () => new DataView((memory as WebAssembly.Memory).buffer);
  const bytes = (at: number, length: number) => new Uint8Array((memory as WebAssembly.Memory).buffer, at, length);
  const written: Uint8Array[][] = [[], [], []];
  let read = 0;

  // Calls `piece` with each of the buffers of a vector, until one is not filled.
  const vector = (at: number, count: number, total: number, piece: (at: number, length: number) => number): number => {
    let sum = 0;
    for (let number = 0; number < count; number++) {
      const length = view().getUint32(at + 8 * number + 4, true);
      const done = piece(view().getUint32(at + 8 * number, true), length);
      sum += done;
      if (done < length) break;
    }
    view().setUint32(total, sum, true);
    return 0;
  };
  const nothing = (count: number, size: number) => {
    view().setUint32(count, 0, true);
    view().setUint32(size, 0, true);
    return 0;
  };
  const known: Record<string, (...numbers: number[]) => number> = {
    args_sizes_get: (count = 0, size = 0) => nothing(count, size),
    args_get: () => 0,
    environ_sizes_get: (count = 0, size = 0) => nothing(count, size),
    environ_get: () => 0,
    fd_read: (file = 0, at = 0, count = 0, total = 0) => {
      if (file !== 0) return BAD_DESCRIPTOR;
      return vector(at, count, total, (to, length) => {
        const part = question.subarray(read, read + length);
        bytes(to, part.length).set(part);
        read += part.length;
        return part.length;
      });
    },
    fd_write: (file = 0, at = 0, count = 0, total = 0) => {
      const out = file === 1 || file === 2 ? written[file] : undefined;
      if (!out) return BAD_DESCRIPTOR;
      return vector(at, count, total, (from, length) => {
        out.push(bytes(from, length).slice());
        return length;
      });
    },
    fd_prestat_get: () => BAD_DESCRIPTOR,
    random_get: (at = 0, length = 0) => {
      bytes(at, length).fill(0);
      return 0;
    },
    proc_exit: () => {
      throw new Exit();
    },
  };
  const imports: WebAssembly.ModuleImports = {};
  for (const { name } of WebAssembly.Module.imports(module)) imports[name] = known[name] ?? (() => NOT_SUPPORTED);
  let ended = true;
  let trap = "";
  try {
    const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: imports });
    memory = instance.exports["memory"] as WebAssembly.Memory;
    (instance.exports["_start"] as () => void)();
  } catch (error) {
    if (!(error instanceof Exit)) {
      ended = false;
      trap = String(error);
    }
  }
  const said = new TextDecoder().decode(joined(written[2] ?? []));
  return { answer: joined(written[1] ?? []), said: said || trap, ended };
}
