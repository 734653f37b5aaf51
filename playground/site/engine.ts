// Asks programs in workers, and stops what takes for ever.
//
// Law: the page never waits. A worker that does not answer in time is ended and another takes its
// place; a question that a newer one replaces is not answered.

import type { Outcome } from "./wasi";

export interface Assets {
  // The compiled program of a name.
  module(name: "engine" | "workshop"): Promise<WebAssembly.Module>;
  worker(): Worker;
}

export class Replaced extends Error {}

export class Stopped extends Error {}

interface Job {
  id: number;
  slot: string;
  question: Uint8Array;
  limit: number;
  done: (answer: Uint8Array<ArrayBuffer>) => void;
  failed: (error: Error) => void;
  begun?: number;
}

export class Engine {
  private worker: Worker | undefined;
  private running: Job | undefined;
  private waiting: Job[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private count = 0;
  // How often a worker was ended before it answered.
  ended = 0;

  constructor(
    private readonly assets: Assets,
    private readonly name: "engine" | "workshop",
  ) {}

  // Loads the program, so that the first answer comes soon.
  async prepare(): Promise<void> {
    await this.assets.module(this.name);
  }

  // The answer to a question. A later question of the same slot takes the place of one that waits,
  // and of one that has run for a quarter of a second.
  ask(question: object, slot: string, limit: number): Promise<Uint8Array<ArrayBuffer>> {
    return new Promise((done, failed) => {
      const text = new TextEncoder().encode(JSON.stringify(question));
      const job: Job = { id: ++this.count, slot, question: text, limit, done, failed };
      this.waiting = this.waiting.filter((other) => {
        if (other.slot === slot) other.failed(new Replaced());
        return other.slot !== slot;
      });
      this.waiting.push(job);
      const current = this.running;
      if (current?.slot === slot && current.begun !== undefined && performance.now() - current.begun > 250) {
        this.end(new Replaced());
      }
      void this.next();
    });
  }

  // As `ask`, of an answer that is an object.
  async object<T>(question: object, slot: string, limit: number): Promise<T> {
    return JSON.parse(new TextDecoder().decode(await this.ask(question, slot, limit))) as T;
  }

  // Ends what is running, if something is.
  stop(): void {
    if (this.running) this.end(new Stopped("stopped"));
  }

  private end(error: Error): void {
    const job = this.running;
    clearTimeout(this.timer);
    this.worker?.terminate();
    this.worker = undefined;
    this.running = undefined;
    this.ended++;
    job?.failed(error);
    void this.next();
  }

  private async next(): Promise<void> {
    if (this.running) return;
    const job = this.waiting.shift();
    if (!job) return;
    this.running = job;
    try {
      const module = await this.assets.module(this.name);
      if (this.running !== job) return;
      if (!this.worker) {
        const worker = this.assets.worker();
        worker.onmessage = ({ data }: MessageEvent<Outcome & { id: number }>) => this.answered(data);
        worker.onerror = () => this.end(new Error("the engine's worker cannot be started"));
        worker.postMessage({ module });
        this.worker = worker;
      }
      job.begun = performance.now();
      const seconds = Math.round(job.limit / 1000);
      this.timer = setTimeout(() => this.end(new Stopped(`stopped after ${seconds} seconds`)), job.limit);
      this.worker.postMessage({ id: job.id, question: job.question });
    } catch (error) {
      if (this.running === job) this.running = undefined;
      job.failed(error instanceof Error ? error : new Error(String(error)));
      void this.next();
    }
  }

  private answered(outcome: Outcome & { id: number }): void {
    const job = this.running;
    if (!job || job.id !== outcome.id) return;
    clearTimeout(this.timer);
    this.running = undefined;
    if (outcome.ended) job.done(outcome.answer);
    else job.failed(new Error(`the engine failed, which is a defect of it: ${outcome.said.trim()}`));
    void this.next();
  }
}
