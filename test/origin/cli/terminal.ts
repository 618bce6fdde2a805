import { Readable, Writable } from "node:stream";
import { run, type Terminal } from "../../../origin/cli/mod.ts";

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one command line in this process, with streams of its own. */
export async function runCli(
  args: readonly string[],
  world: { stdin?: string; env?: Record<string, string>; cwd?: string } = {},
): Promise<Ran> {
  const out = new Collected();
  const err = new Collected();
  const terminal: Terminal = {
    stdin: Readable.from(world.stdin === undefined ? [] : [Buffer.from(world.stdin)]),
    stdout: out,
    stderr: err,
    env: world.env ?? {},
    cwd: world.cwd ?? "/nowhere",
  };
  const code = await run(args, terminal);
  return { code, stdout: out.text, stderr: err.text };
}

class Collected extends Writable {
  text = "";

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}
