import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEdge, startOrigin, type EdgeProcess, type OriginProcess } from "../e2e/harness.ts";
import type { OutboxStatus } from "../../edge/outbox/types.ts";
import { FaultProxy, noFault, type FaultPlan } from "../support/faultProxy.ts";

const drainMsMax = 75_000;

/** One region: its edge under wrangler's runtime, and the faults on its way to the origin. */
export interface Region {
  readonly name: string;
  readonly proxy: FaultProxy;
  /** Stays the same over restarts. */
  readonly url: string;
  edge: EdgeProcess;
}

/** The processes of a run, which can be killed and started again on the same data and port. */
export class Stage {
  readonly regions: Region[] = [];
  originKills = 0;
  edgeKills = 0;
  readonly #dir = mkdtempSync(join(tmpdir(), "forebay-chaos-"));
  #origin: OriginProcess;

  private constructor(origin: OriginProcess) {
    this.#origin = origin;
  }

  static async open(names: readonly string[]): Promise<Stage> {
    const stage = new Stage(await startOrigin());
    for (const name of names) {
      const proxy = new FaultProxy(stage.#origin.port);
      const edge = await startEdge({
        originUrl: await proxy.listen(),
        region: name,
        dataDir: join(stage.#dir, name),
      });
      stage.regions.push({ name, proxy, url: edge.url, edge });
    }
    return stage;
  }

  /** A file of the run's own. */
  path(name: string): string {
    return join(this.#dir, name);
  }

  get originUrl(): string {
    return this.#origin.url;
  }

  setFaults(plan: FaultPlan): void {
    this.regions.forEach(({ proxy }) => proxy.set(plan));
  }

  /** kill -9, then a start on the same data and port, with these flags. */
  async killOrigin(downMs: number, flags: readonly string[] = []): Promise<void> {
    const { dataDir, port } = this.#origin;
    await this.#origin.crash();
    this.originKills += 1;
    await sleep(downMs);
    this.#origin = await startOrigin({ dataDir, port, flags });
  }

  async killEdge(region: Region, downMs: number): Promise<void> {
    const port = Number(new URL(region.url).port);
    await region.edge.crash();
    this.edgeKills += 1;
    await sleep(downMs);
    region.edge = await startEdge({
      originUrl: region.proxy.url,
      region: region.name,
      dataDir: region.edge.dataDir,
      port,
    });
  }

  async status(region: Region, partition: number): Promise<OutboxStatus> {
    const answer = await fetch(`${region.url}/v1/outboxes/${partition}`);
    if (answer.status !== 200) {
      throw new Error(`outbox ${region.name}:${partition}: ${answer.status}`);
    }
    return (await answer.json()) as OutboxStatus;
  }

  /** The status of an outbox once it is empty; its backoff may last a minute. */
  async emptied(region: Region, partition: number): Promise<OutboxStatus> {
    for (const deadline = Date.now() + drainMsMax; ; await sleep(100)) {
      const status = await this.status(region, partition);
      if (status.frames === 0) {
        return status;
      }
      if (Date.now() > deadline) {
        throw new Error(`${region.name}:${partition} does not drain: ${JSON.stringify(status)}`);
      }
    }
  }

  /** Resident MiB of all processes in the edges' groups, and of the origin. */
  residentMiB(): { readonly edges: number; readonly origin: number } {
    const groups = this.regions.map(({ edge }) => residentOfGroup(edge.pid));
    return { edges: Math.max(...groups), origin: residentOfProcess(this.#origin.pid) };
  }

  async close(): Promise<void> {
    this.setFaults(noFault);
    for (const { edge, proxy } of this.regions) {
      await edge.stop();
      await proxy.close();
    }
    await this.#origin.stop();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

function residentOfGroup(leader: number): number {
  let sum = 0;
  for (const entry of readdirSync("/proc")) {
    const stat = /^\d+$/.test(entry) ? readOr(`/proc/${entry}/stat`) : "";
    // pid (name) state ppid pgrp …
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (Number(fields[2]) === leader) {
      sum += residentOfProcess(Number(entry));
    }
  }
  return sum;
}

function residentOfProcess(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readOr(`/proc/${pid}/status`))?.[1];
  return Math.round(Number(kib ?? 0) / 1024);
}

/** "" for a process that has gone. */
function readOr(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

export const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));
