import { execFileSync } from "node:child_process";
import { cpuMicros } from "./cpu.ts";
import type { Server } from "./server.ts";
import { wrk } from "./wrk.ts";

/** One side's turn in a round. */
export interface Turn<Sample> {
  readonly name: string;
  measure(round: number): Promise<Sample>;
}

/** Samples by name, in the order of the rounds. */
export type Samples<Sample> = ReadonlyMap<string, readonly Sample[]>;

/** `--rounds N`, for a quick look; what is told to others has at least nine. */
export const rounds: number = (() => {
  const at = process.argv.indexOf("--rounds");
  const given = at === -1 ? 9 : Number(process.argv[at + 1]);
  if (!Number.isInteger(given) || given < 1) {
    throw new Error(`--rounds needs a whole number from 1 on, got ${process.argv[at + 1]}`);
  }
  return given;
})();

/** Within a round each group's turns follow each other, so that what is compared ran under the same conditions. */
export async function interleaved<Sample>(
  groups: readonly (readonly Turn<Sample>[])[],
  settled: () => Promise<void>,
): Promise<Samples<Sample>> {
  const samples = new Map<string, Sample[]>();
  for (let round = 0; round < rounds; round++) {
    for (const group of groups) {
      // The order rotates and turns round, so that no side always runs after the same other.
      const order = round % 2 === 0 ? group : group.toReversed();
      for (let i = 0; i < order.length; i++) {
        const turn = order[(i + round) % order.length];
        if (turn !== undefined) {
          await settled();
          const list = samples.get(turn.name) ?? [];
          list.push(await turn.measure(round));
          samples.set(turn.name, list);
        }
      }
    }
    process.stderr.write(`round ${round + 1} of ${rounds}\n`);
  }
  return samples;
}

/** Waits until no side works on what the last run left behind (garbage, dirty pages): all share a core and a disk. */
export async function settle(servers: readonly Server[]): Promise<void> {
  execFileSync("sync");
  const busy = (): number => servers.reduce((sum, server) => sum + cpuMicros(server.pid), 0);
  for (let tries = 0; tries < 20; tries++) {
    const before = busy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    if (busy() - before < 2000) {
      return;
    }
  }
}

/** Creates a stream and returns its URL. */
export async function createStream(
  server: Server,
  name: string,
  contentType = "application/octet-stream",
): Promise<string> {
  const url = `${server.url}/v1/stream/${name}`;
  const answer = await fetch(url, { method: "PUT", headers: { "content-type": contentType } });
  if (answer.status !== 201) {
    throw new Error(`${server.name} answered ${answer.status} to PUT ${url}`);
  }
  await answer.arrayBuffer();
  return url;
}

/** Two seconds of appends, so that nothing is measured on code that is not compiled yet. */
export async function warmUp(servers: readonly Server[]): Promise<void> {
  for (const server of servers) {
    const url = await createStream(server, "warm");
    await wrk({ url, connections: 64, seconds: 2, script: "append.lua" });
  }
}
