import { afterAll, beforeAll, expect, test } from "vitest";
import { outboxOf } from "../e2e/outboxes.ts";
import { readAll } from "../e2e/stream.ts";
import { assertWhole, type LoadRecord } from "../crash/record.ts";
import { seededRandom } from "../origin/seededRandom.ts";
import { balance, type Found } from "../support/account.ts";
import { noFault, storm } from "../support/faultProxy.ts";
import { Ledger, readLedger } from "../support/ledger.ts";
import { ChaosClient, type ClientOptions, type Habit } from "./client.ts";
import { Stage, sleep, type Region } from "./stage.ts";

/**
 * Everything at once: clients of every habit and level through four outboxes in two regions, an origin that is killed, edges
 * that are killed, a store that is full once, and faults on each connection between. `npm run soak -- chaos` runs it for long.
 */
const soaking = process.env["FOREBAY_SOAK"] === "1";
const seed = Number(process.env["FOREBAY_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const runMs = soaking ? Number(process.env["FOREBAY_SOAK_MINUTES"] ?? "10") * 60_000 : 12_000;
/** Between two kills, and how long a connection may hang: all of it while soaking. */
const pace = soaking
  ? { originMs: [20_000, 40_000], edgeMs: [60_000, 100_000], holdMs: 30_000 }
  : { originMs: [3_000, 6_000], edgeMs: [5_000, 8_000], holdMs: 2_000 };

const { next: random } = seededRandom(seed);
const between = ([low = 0, high = 0]: readonly number[]): number => low + random() * (high - low);

/** Two streams whose outboxes differ. */
const first = "chaos/0";
const second =
  Array.from({ length: 100 }, (_, i) => `chaos/${i}`).find(
    (stream) => outboxOf(stream) !== outboxOf(first),
  ) ?? "";
const streams = [first, second];

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open(["east", "west"]);
});
afterAll(async () => {
  await stage.close();
});

function clients(ledger: Ledger): ChaosClient[] {
  const kinds: readonly [Habit, ClientOptions["level"]][] = [
    ["producer", "edge"],
    ["producer", "origin"],
    ["batch", "edge"],
    ["none", "none"],
    ["roamer", "edge"],
    ["mixer", "edge"],
  ];
  return stage.regions.flatMap((home, r) =>
    streams.flatMap((stream, s) =>
      kinds.map(([habit, level]) => {
        const name = `${habit}-${level}-${home.name}-${s}`;
        const edges = [home, ...stage.regions.filter((_, i) => i !== r)];
        return new ChaosClient({ habit, level, name, stream, edges, ledger, random });
      }),
    ),
  );
}

/** More than the smallest store holds, so that one started with that limit is full. */
async function putBallast(): Promise<void> {
  for (let i = 0; i < 2; i++) {
    const answer = await fetch(`${stage.originUrl}/v1/stream/chaos/ballast`, {
      method: i === 0 ? "PUT" : "POST",
      headers: { "content-type": "application/octet-stream" },
      body: new Uint8Array(900_000),
    });
    expect(answer.ok).toBe(true);
  }
}

/** Kills until `endsAt`, each kind at its own pace. */
async function havoc(endsAt: number): Promise<void> {
  const left = (): number => endsAt - Date.now();
  const origins = async (): Promise<void> => {
    for (let n = 0; ; n++) {
      await sleep(Math.min(between(pace.originMs), Math.max(0, left())));
      if (left() <= 0) {
        return;
      }
      // Once it comes back with a store that has no room for another byte.
      await stage.killOrigin(random() * 800, n === 0 ? ["--store-bytes-max", "1048576"] : []);
    }
  };
  const edges = async (): Promise<void> => {
    for (let n = 0; ; n++) {
      await sleep(Math.min(between(pace.edgeMs), Math.max(0, left())));
      if (left() <= 0) {
        return;
      }
      await stage.killEdge(stage.regions[n % stage.regions.length] as Region, random() * 500);
    }
  };
  await Promise.all([origins(), edges()]);
}

async function emptied(): Promise<{ accepted: number; dead: number; full: number }> {
  const sums = { accepted: 0, dead: 0, full: 0 };
  for (const region of stage.regions) {
    for (const stream of streams) {
      const partition = outboxOf(stream);
      const status = await stage.emptied(region, partition);
      const { accepted, acknowledged, dead, inFrames } = status.ledger;
      expect({ inFrames, bytes: status.bytes }).toEqual({ inFrames: 0, bytes: 0 });
      expect(acknowledged + dead).toBe(accepted);
      sums.accepted += accepted;
      sums.dead += dead;
      sums.full += status.link.nacks["store_full"] ?? 0;
    }
  }
  return sums;
}

async function foundRecords(): Promise<Map<string, LoadRecord[]>> {
  const found = new Map<string, LoadRecord[]>();
  for (const stream of streams) {
    const records = await readAll<LoadRecord>(stage.originUrl, stream);
    records.forEach(assertWhole);
    found.set(stream, records);
  }
  return found;
}

interface Quarantined {
  readonly code: string;
  readonly records: readonly { readonly text: string }[];
}

async function quarantine(): Promise<readonly Quarantined[]> {
  const path = "_forebay/quarantine";
  const { status } = await fetch(`${stage.originUrl}/v1/stream/${path}`, { method: "HEAD" });
  return status === 404 ? [] : await readAll<Quarantined>(stage.originUrl, path);
}

test(
  `F1 F2 F10 F12 F13 F21 chaos for ${runMs / 1000} s, seed ${seed}: each acknowledged record once, in order, and the account adds up`,
  async () => {
    for (const stream of streams) {
      const headers = { "content-type": "application/json" };
      const url = `${stage.originUrl}/v1/stream/${stream}`;
      expect((await fetch(url, { method: "PUT", headers })).status).toBe(201);
    }
    await putBallast();
    const ledger = new Ledger(stage.path("ledger"));
    const all = clients(ledger);
    stage.setFaults(storm(random, pace.holdMs));
    const running = Promise.all(all.map((client) => client.run()));
    running.catch(() => {});
    await Promise.race([havoc(Date.now() + runMs), running]);
    stage.setFaults(noFault);
    await stage.killOrigin(0);
    all.forEach((client) => client.stop());
    await running;
    // What an aborted ack=none left under way lands, or is lost with its flight.
    await sleep(1000);
    const { full, ...outboxes } = await emptied();
    ledger.close();

    const held = await quarantine();
    // Only moving producers can be overtaken by their own next epoch.
    expect(new Set(held.map(({ code }) => code))).toEqual(
      new Set(held.length === 0 ? [] : ["stale_epoch"]),
    );
    const quarantined = held.flatMap(({ records }) =>
      records.map(({ text }) => JSON.parse(text) as Found),
    );
    const account = balance(readLedger(ledger.path), await foundRecords(), quarantined);
    expect(account.faults.slice(0, 20)).toEqual([]);
    expect(account.stored + account.quarantined).toBe(account.acked.edge + account.acked.origin);
    // Promise 5: what the outboxes took is what the clients of the edge swear to, and what came of ack=none.
    expect(outboxes).toEqual({ accepted: account.acked.edge + account.unsworn, dead: 0 });
    const outcomes = new Map<string, number>();
    for (const [outcome, n] of all.flatMap((client) => [...client.outcomes])) {
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + n);
    }
    expect(full + (outcomes.get("503 store_full") ?? 0)).toBeGreaterThan(0);
    expect([...outcomes.keys()].filter((outcome) => outcome.startsWith("500"))).toEqual([]);
    console.log(
      JSON.stringify({
        seed,
        ...account,
        originKills: stage.originKills,
        edgeKills: stage.edgeKills,
        met: stage.regions.map(({ proxy }) => Object.fromEntries(proxy.drawn)),
        full,
        resident: stage.residentMiB(),
        outcomes: Object.fromEntries(outcomes),
      }),
    );
  },
  runMs + (soaking ? 300_000 : 100_000),
);
