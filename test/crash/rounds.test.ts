import { expect, test } from "vitest";
import { startEdge, startOrigin } from "../e2e/harness.ts";
import { drained } from "../e2e/outboxes.ts";
import { readAll } from "../e2e/stream.ts";
import { LoadProducer, type ProducerKind } from "./producer.ts";
import { seededRandom } from "../origin/seededRandom.ts";
import { assertWhole, type LoadRecord } from "./record.ts";

const soaking = process.env["FOREBAY_SOAK"] === "1";
const seed = Number(process.env["FOREBAY_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const until = Date.now() + Number(process.env["FOREBAY_SOAK_MINUTES"] ?? "10") * 60_000;
const rounds = 20;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const kinds: readonly ProducerKind[] = ["origin", "edge", "batch"];
const streams = ["crash/a", "crash/b"];

/** What each producer swears to, found in the stream exactly once, whole, and in its order. */
function compare(stored: readonly LoadRecord[], producers: readonly LoadProducer[]): void {
  stored.forEach(assertWhole);
  for (const producer of producers) {
    const name = ({ producer: p, seq, index }: LoadRecord): string => `${p}#${seq}.${index}`;
    const found = stored.filter((record) => record.producer === producer.options.name).map(name);
    expect(found, producer.options.name).toEqual(producer.acknowledged.map(name));
  }
  expect(stored.length).toBe(producers.reduce((sum, p) => sum + p.acknowledged.length, 0));
}

test(
  `F1 F2 F12 F21 P9 J19 ${rounds} rounds of kill -9 under load, seed ${seed}`,
  async () => {
    const { next: random } = seededRandom(seed);
    let origin = await startOrigin();
    const { dataDir, port } = origin;
    const edge = await startEdge({ originUrl: origin.url });
    for (const stream of streams) {
      const made = await fetch(`${edge.url}/v1/stream/${stream}`, {
        method: "PUT",
        headers: { "content-type": "application/json" },
      });
      expect(made.status).toBe(201);
    }
    const producers = streams.flatMap((stream, s) =>
      kinds.flatMap((kind) =>
        [0, 1].map(
          (n) =>
            new LoadProducer({
              kind,
              stream,
              name: `${kind}-${s}-${n}`,
              edgeUrl: edge.url,
              random,
            }),
        ),
      ),
    );
    const running = Promise.all(producers.map((producer) => producer.run()));
    running.catch(() => {});

    let killed = 0;
    while (killed < rounds || (soaking && Date.now() < until)) {
      await Promise.race([sleep(200 + random() * 500), running]);
      await origin.crash();
      killed++;
      await sleep(random() * 200);
      origin = await startOrigin({ dataDir, port });
    }
    await sleep(300);
    producers.forEach((producer) => producer.stop());
    await running;

    const outboxes = new Map<string, { accepted: number; dead: number }>();
    for (const stream of streams) {
      const { buffer, ledger, frames, bytes } = await drained(edge.url, stream);
      expect({ frames, bytes }).toEqual({ frames: 0, bytes: 0 });
      outboxes.set(buffer, ledger);
    }
    for (const stream of streams) {
      const own = producers.filter((producer) => producer.options.stream === stream);
      compare(await readAll<LoadRecord>(origin.url, stream), own);
    }
    // the ledger: what the outboxes accepted is what the clients of the edge swear to, and none of it is dead
    const throughEdge = producers
      .filter(({ options }) => options.kind !== "origin")
      .reduce((sum, producer) => sum + producer.acknowledged.length, 0);
    const ledgers = [...outboxes.values()];
    expect(ledgers.reduce((sum, ledger) => sum + ledger.accepted, 0)).toBe(throughEdge);
    expect(ledgers.reduce((sum, ledger) => sum + ledger.dead, 0)).toBe(0);
    const quarantine = await fetch(`${origin.url}/v1/stream/_forebay/quarantine`);
    expect(quarantine.status).toBe(404);

    const interrupted = producers.filter(({ statuses }) =>
      [...statuses.keys()].some((s) => !s.startsWith("2")),
    );
    console.log(
      JSON.stringify({
        seed,
        killed,
        records: producers.reduce((sum, producer) => sum + producer.acknowledged.length, 0),
        attempts: producers.reduce((sum, producer) => sum + producer.attempts, 0),
        interrupted: interrupted.length,
      }),
    );
    expect(interrupted.length).toBeGreaterThan(0);
    await edge.stop();
    await origin.stop();
  },
  soaking ? 3_600_000 : 120_000,
);
