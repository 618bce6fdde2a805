import { ForebayError } from "../../shared/errors/mod.ts";
import { clock, pause } from "../ports/mod.ts";
import type { Remote } from "./remote.ts";
import { printLine, type Terminal } from "./terminal.ts";

/** What an outbox says of itself (`edge/outbox`), as far as it is printed here. */
interface Status {
  readonly buffer: string;
  readonly highestFsn: number;
  readonly frames: number;
  readonly bytes: number;
  readonly oldestUnackedMs: number;
  readonly constructions: number;
  readonly ledger: Readonly<Record<string, number>>;
  readonly health: { readonly state: string; readonly reason: string | null };
}

interface Dead {
  readonly row: number;
  readonly fsn: number;
  readonly records: number;
  readonly at: number;
  readonly reason: string;
  readonly bytes: number;
}

const path = "/v1/outboxes";

export async function listOutboxes(
  remote: Remote,
  json: boolean,
  terminal: Terminal,
): Promise<void> {
  for await (const { partition, status } of usedOutboxes(remote)) {
    await printLine(terminal, json ? JSON.stringify(status) : line(partition, status));
  }
}

/** One after the other: each look wakes an outbox, and is billed. */
async function* usedOutboxes(
  remote: Remote,
): AsyncGenerator<{ readonly partition: number; readonly status: Status }> {
  const { partitions } = (await remote.getJson(path)) as { readonly partitions: number };
  for (let partition = 0; partition < partitions; partition++) {
    const status = (await remote.getJson(`${path}/${partition}`)) as Status;
    if (status.constructions > 0) {
      yield { partition, status };
    }
  }
}

function line(partition: number, status: Status): string {
  const { buffer, frames, bytes, oldestUnackedMs, ledger, health } = status;
  const dead = ledger["dead"] ?? 0;
  const notes = [
    dead === 0 ? "" : `${dead} records dead`,
    health.reason === null ? "" : `degraded: ${health.reason}`,
  ].filter((note) => note !== "");
  const age = `oldest ${Math.round(oldestUnackedMs / 1000)} s`;
  return [partition, buffer, `${frames} frames`, `${bytes} bytes`, age, ...notes].join("  ");
}

export async function describeOutbox(
  remote: Remote,
  { partition, json }: { readonly partition: number; readonly json: boolean },
  terminal: Terminal,
): Promise<void> {
  const status = await remote.getJson(`${path}/${partition}`);
  await printLine(terminal, json ? JSON.stringify(status) : JSON.stringify(status, null, 2));
}

/** @throws ForebayError `origin_unreachable` when it is not empty in time: everything is still kept */
export async function drainOutbox(
  remote: Remote,
  options: { readonly partition: number; readonly seconds: number; readonly json: boolean },
  terminal: Terminal,
): Promise<void> {
  const { partition, seconds, json } = options;
  const deadline = clock.now() + seconds * 1000;
  let status = (await remote.postJson(`${path}/${partition}/drain`)) as Status;
  while (status.frames > 0 && clock.now() < deadline) {
    await pause(250);
    status = (await remote.getJson(`${path}/${partition}`)) as Status;
  }
  if (status.frames > 0) {
    const why = status.health.reason ?? "the origin has not taken them yet";
    const message = `${status.frames} frames are still kept after ${seconds} s: ${why}`;
    throw new ForebayError("origin_unreachable", message);
  }
  const { buffer, highestFsn } = status;
  await printLine(
    terminal,
    json ? JSON.stringify(status) : `${buffer} is empty, FSN ${highestFsn}`,
  );
}

export async function listDead(remote: Remote, json: boolean, terminal: Terminal): Promise<void> {
  for await (const { partition, status } of usedOutboxes(remote)) {
    let after = 0;
    for (let more = (status.ledger["dead"] ?? 0) > 0; more;) {
      const target = `${path}/${partition}/dead?after=${after}`;
      const { frames } = (await remote.getJson(target)) as { readonly frames: readonly Dead[] };
      for (const dead of frames) {
        const { row, records, bytes, reason, at } = dead;
        const when = new Date(at).toISOString();
        const shown = [partition, row, `${records} records`, `${bytes} bytes`, reason, when];
        await printLine(terminal, json ? JSON.stringify({ partition, ...dead }) : shown.join("  "));
        after = row;
      }
      more = frames.length > 0;
    }
  }
}

export async function showDead(
  remote: Remote,
  { partition, row }: { readonly partition: number; readonly row: number },
  terminal: Terminal,
): Promise<void> {
  const letter = await remote.getJson(`${path}/${partition}/dead/${row}`);
  await printLine(terminal, JSON.stringify(letter, null, 2));
}

export async function replayDead(
  remote: Remote,
  options: { readonly partition: number; readonly row: number; readonly json: boolean },
  terminal: Terminal,
): Promise<void> {
  const { partition, row, json } = options;
  const said = (await remote.postJson(`${path}/${partition}/dead/${row}/replay`)) as {
    readonly fsn: number;
  };
  await printLine(
    terminal,
    json ? JSON.stringify({ partition, ...said }) : `row ${row} goes again as FSN ${said.fsn}`,
  );
}
