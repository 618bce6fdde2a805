import { execFileSync, spawn, type ChildProcessByStdio } from "node:child_process";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { buildDir } from "./place.ts";
import { clientCore } from "./server.ts";

/** Compiles a client of clients/ and returns the program's path. */
export function compileClient(name: string): string {
  const source = new URL(`clients/${name}.c`, import.meta.url).pathname;
  const program = join(buildDir(), `bench-${name}`);
  const flags = ["-std=c17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror"];
  execFileSync("cc", [...flags, "-o", program, source], { stdio: "inherit" });
  return program;
}

/** A client on its core that says when it is ready, and goes on when told. Its last line is JSON. */
export class Client {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;

  constructor(program: string, args: readonly string[]) {
    this.#child = spawn("taskset", ["-c", clientCore, program, ...args], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines: Interface = createInterface({ input: this.#child.stdout });
    this.#lines = lines[Symbol.asyncIterator]();
  }

  /** @throws Error when it ended instead */
  async line(): Promise<string> {
    const next = await this.#lines.next();
    if (next.done === true) {
      throw new Error(`${this.#child.spawnargs.join(" ")} ended with ${this.#child.exitCode}`);
    }
    return next.value;
  }

  go(): void {
    this.#child.stdin.end("\n");
  }
}
