import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import type { Outbox, OutboxReply, OutboxRequest, OutboxStatus } from "../../../edge/outbox/mod.ts";
import { requestFlag, type ProducerTag } from "../../../shared/frame/mod.ts";

export type Stub = DurableObjectStub<Outbox>;

let next = 0;

/** An outbox of its own for each test. */
export function freshOutbox(): Stub {
  next += 1;
  return env.OUTBOX.get(env.OUTBOX.idFromName(`buf:test:${next}`));
}

/** The same object through a new stub: one that saw its object die is broken. */
export function again(stub: Stub): Stub {
  return env.OUTBOX.get(stub.id);
}

export interface RequestParts {
  readonly stream?: string;
  readonly records?: readonly (string | Uint8Array)[];
  readonly producer?: ProducerTag | null;
  readonly batchId?: string | null;
  readonly flags?: number;
}

export function request(parts: RequestParts = {}): OutboxRequest {
  const { stream = "s", records = ["1"], producer = null, batchId = null } = parts;
  return {
    request: {
      stream,
      flags: parts.flags ?? requestFlag.create | requestFlag.json,
      acceptedAt: 1_700_000_000_000,
      contentType: null,
      producer,
      streamSeq: null,
      records: records.map((each) =>
        typeof each === "string" ? new TextEncoder().encode(each) : each,
      ),
    },
    batchId,
  };
}

/** Its own copy of what RPC gives. */
export async function append(stub: Stub, ...requests: OutboxRequest[]): Promise<OutboxReply> {
  const { epoch, answers } = await stub.append(requests);
  return { epoch, answers: answers.map((answer) => structuredClone(answer)) };
}

/** The status, checked: accepted = in frames + acknowledged + dead, as the tables count them (F21). */
export async function checkedStatus(stub: Stub): Promise<OutboxStatus> {
  return await runInDurableObject(stub, async (instance: Outbox, { storage }) => {
    const status = await instance.status();
    const { accepted, inFrames, acknowledged, dead } = status.ledger;
    const counted = countFrames(storage.sql);
    const said = { frames: status.frames, n: inFrames, bytes: status.bytes };
    if (accepted !== inFrames + acknowledged + dead || !sameValues(counted, said)) {
      throw new Error(
        `counted ${JSON.stringify(counted)}, the status is ${JSON.stringify(status)}`,
      );
    }
    return status;
  });
}

interface Counted {
  readonly frames: number;
  readonly n: number;
  readonly bytes: number;
}

function countFrames(sql: SqlStorage): Counted {
  const used = sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'frames'").toArray().length > 0;
  const query =
    "SELECT COUNT(*) AS frames, COALESCE(SUM(n), 0) AS n, COALESCE(SUM(LENGTH(bytes)), 0) AS bytes FROM frames";
  return used
    ? sql.exec<Record<keyof Counted, number>>(query).one()
    : { frames: 0, n: 0, bytes: 0 };
}

const sameValues = (a: Counted, b: Counted): boolean =>
  a.frames === b.frames && a.n === b.n && a.bytes === b.bytes;

/** Asks the status, which wakes nothing that sleeps, until nothing is kept. */
export async function drained(stub: Stub): Promise<OutboxStatus> {
  return await untilStatus(stub, ({ frames }) => frames === 0);
}

export async function untilStatus(
  stub: Stub,
  holds: (status: OutboxStatus) => boolean,
): Promise<OutboxStatus> {
  const deadline = Date.now() + 15_000;
  for (;;) {
    const status = await checkedStatus(stub);
    if (holds(status)) {
      return status;
    }
    if (Date.now() > deadline) {
      throw new Error(`waited 15 s in vain: ${JSON.stringify(status)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export async function alarmOf(stub: Stub): Promise<number | null> {
  return await runInDurableObject(stub, (_instance, { storage }) => storage.getAlarm());
}

/** Makes the strikes that were counted so far older than the 5 s a frame is given. */
export async function ageStrikes(stub: Stub): Promise<void> {
  await runInDurableObject(stub, (_instance, { storage }) => {
    const { v } = storage.sql.exec<{ v: string }>("SELECT v FROM meta WHERE k = 'drain'").one();
    const drain = JSON.parse(v);
    drain.memory.strikes.sinceMs -= 6000;
    storage.sql.exec("UPDATE meta SET v = ? WHERE k = 'drain'", JSON.stringify(drain));
  });
  await evictDurableObject(stub);
}
