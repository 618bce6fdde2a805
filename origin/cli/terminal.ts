import type { Readable, Writable } from "node:stream";

/** The world a command runs in; tests hand in their own streams. */
export interface Terminal {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** Whoever read our output went away (`forebay read … | head`): the end of the work, not an error. */
export class OutputClosed extends Error {
  constructor() {
    super("the reader of stdout went away");
    this.name = "OutputClosed";
  }
}

/**
 * Writes to stdout and waits until it is taken, so that a slow reader slows us down.
 *
 * @throws OutputClosed when nobody reads any more
 */
export function print(terminal: Terminal, data: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    terminal.stdout.write(data, (error) => {
      if (error === null || error === undefined) {
        resolve();
      } else {
        reject(isPipeError(error) ? new OutputClosed() : error);
      }
    });
  });
}

export function printLine(terminal: Terminal, line: string): Promise<void> {
  return print(terminal, `${line}\n`);
}

/** A remark for humans, on stderr so that stdout stays data. Never fails. */
export function remark(terminal: Terminal, line: string): void {
  terminal.stderr.write(`${line}\n`);
}

/**
 * Without listeners a broken pipe would end the process with a stack trace; `print` learns of it by its own
 * callback.
 */
export function quietOnBrokenPipes(terminal: Terminal): void {
  for (const stream of [terminal.stdout, terminal.stderr]) {
    stream.on("error", (error) => {
      if (!isPipeError(error)) {
        throw error;
      }
    });
  }
}

function isPipeError(error: Error): boolean {
  const code = "code" in error ? error.code : undefined;
  return (
    code === "EPIPE" || code === "ERR_STREAM_DESTROYED" || code === "ERR_STREAM_WRITE_AFTER_END"
  );
}
