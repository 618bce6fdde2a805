import { DurableStream, IdempotentProducer, stream } from "@durable-streams/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startEdge, startOrigin, type EdgeProcess, type OriginProcess } from "./harness.ts";

/** The official client, unmodified; its `fetch` option is only used to watch, and to repeat requests. */

const recordCount = 2000;
const json = "application/json";

interface Record {
  readonly n: number;
  readonly text: string;
}
const records: readonly Record[] = Array.from({ length: recordCount }, (_, n) => ({
  n,
  text: `record ${n} – ünï`,
}));

let origin: OriginProcess;
let edge: EdgeProcess;
beforeAll(async () => {
  origin = await startOrigin({ flags: ["--long-poll-ms", "1s", "--sse-lifetime-ms", "1s"] });
  edge = await startEdge({ originUrl: origin.url });
});
afterAll(async () => {
  await edge?.stop();
  await origin?.stop();
});

describe.each(["origin", "edge"] as const)("at the %s", (side) => {
  const urlOf = (name: string): string =>
    `${side === "origin" ? origin.url : edge.url}/v1/stream/client/${side}/${name}`;

  test("IdempotentProducer with five requests in flight and a network that repeats some: once, in order", async () => {
    const url = urlOf("producer");
    const handle = await DurableStream.create({ url, contentType: json });
    const watch = new Watch(7);
    const errors: Error[] = [];
    const producer = new IdempotentProducer(handle, "p", {
      maxInFlight: 5,
      maxBatchBytes: 400,
      fetch: watch.fetch,
      onError: (error) => errors.push(error),
    });
    for (const record of records) {
      producer.append(JSON.stringify(record));
    }
    await producer.flush();
    await producer.close();
    expect(errors).toEqual([]);
    expect(watch.inFlightMax).toBe(5);
    expect(watch.repeated).toBeGreaterThan(10);
    const reader = await stream<Record>({ url, live: false });
    expect(await reader.json()).toEqual(records);
  });

  test.each(["long-poll", "sse"] as const)(
    "a %s reader follows from the start, over the ends of its requests, until the stream is closed",
    async (live) => {
      const url = urlOf(`live-${live}`);
      const handle = await DurableStream.create({ url, contentType: json });
      const reader = await stream<Record>({ url, live });
      const seen: Record[] = [];
      const done = new Promise<void>((resolve) => {
        reader.subscribeJson<Record>((batch) => {
          seen.push(...batch.items);
          if (seen.length >= 300) {
            resolve();
          }
        });
      });
      const producer = new IdempotentProducer(handle, "p", { maxBatchBytes: 2000 });
      for (const record of records.slice(0, 100)) {
        producer.append(JSON.stringify(record));
      }
      await producer.flush();
      // Longer than a long-poll and an SSE response last here.
      await new Promise((resolve) => {
        setTimeout(resolve, 1500);
      });
      for (const record of records.slice(100, 300)) {
        producer.append(JSON.stringify(record));
      }
      await producer.close();
      await done;
      expect(seen).toEqual(records.slice(0, 300));
      await reader.closed;
    },
  );

  test("a reader goes on where another left off", async () => {
    const url = urlOf("resume");
    const handle = await DurableStream.create({ url, contentType: json });
    for (const record of records.slice(0, 3)) {
      await handle.append(JSON.stringify(record));
    }
    const before = await stream<Record>({ url, live: false });
    expect(await before.json()).toHaveLength(3);
    for (const record of records.slice(3, 5)) {
      await handle.append(JSON.stringify(record));
    }
    const after = await stream<Record>({ url, live: false, offset: before.offset });
    expect(await after.json()).toEqual(records.slice(3, 5));
    expect(await handle.head()).toMatchObject({ exists: true, offset: after.offset });
  });

  test("bytes of a binary stream come back as they went", async () => {
    const url = urlOf("bytes");
    const handle = await DurableStream.create({ url, contentType: "application/octet-stream" });
    const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 31) % 256);
    await handle.append(bytes.slice(0, 50_000));
    await handle.append(bytes.slice(50_000));
    const reader = await stream({ url, live: false });
    expect(Buffer.from(await reader.body()).equals(Buffer.from(bytes))).toBe(true);
  });

  test("a stale producer is fenced, and claims a new epoch when it may", async () => {
    const url = urlOf("fenced");
    const handle = await DurableStream.create({ url, contentType: json });
    const newer = new IdempotentProducer(handle, "p", { epoch: 3 });
    newer.append('{"from":"newer"}');
    await newer.flush();
    const errors: Error[] = [];
    const stale = new IdempotentProducer(handle, "p", { epoch: 1, onError: (e) => errors.push(e) });
    stale.append('{"from":"stale"}');
    await stale.flush().catch((error: Error) => errors.push(error));
    expect(errors.map((error) => error.name)).toContain("StaleEpochError");
    const claiming = new IdempotentProducer(handle, "p", { epoch: 1, autoClaim: true });
    claiming.append('{"from":"claiming"}');
    await claiming.flush();
    expect(claiming.epoch).toBe(4);
    const reader = await stream({ url, live: false });
    expect(await reader.json()).toEqual([{ from: "newer" }, { from: "claiming" }]);
  });
});

/**
 * Counts requests in flight; every `n`th answer is lost on its way, and the request sent again, as a retrying
 * transport does (the producer itself leaves that to its fetch).
 */
class Watch {
  inFlightMax = 0;
  repeated = 0;
  readonly #every: number;
  #inFlight = 0;
  #count = 0;

  constructor(every: number) {
    this.#every = every;
  }

  readonly fetch: typeof fetch = async (input, init) => {
    this.#inFlight += 1;
    this.inFlightMax = Math.max(this.inFlightMax, this.#inFlight);
    this.#count += 1;
    const repeat = this.#count % this.#every === 0;
    try {
      const answer = await fetch(input, init);
      if (!repeat) {
        return answer;
      }
      await answer.arrayBuffer();
      this.repeated += 1;
      return await fetch(input, init);
    } finally {
      this.#inFlight -= 1;
    }
  };
}
