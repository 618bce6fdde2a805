import { mkdtempSync, rmSync, statSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { OriginConfig } from "../../origin/config/mod.ts";
import { startOrigin, type RunningOrigin } from "../../origin/main.ts";
import { ForebayError } from "../../shared/errors/mod.ts";
import "./gateway/eventually.ts";

const MiB = 1024 * 1024;
let directory: string;
let running: RunningOrigin[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "forebay-main-"));
});
afterEach(async () => {
  await Promise.all(running.map((origin) => origin.close()));
  running = [];
  rmSync(directory, { recursive: true });
});

function config(changes: Partial<OriginConfig> = {}): OriginConfig {
  return {
    host: "127.0.0.1",
    port: 0,
    dataDir: join(directory, "data"),
    key: null,
    allowedOrigins: [],
    publicUrl: null,
    webhookPrivateHosts: [],
    longPollMs: 500,
    sseLifetimeMs: 60_000,
    journalBudgetBytes: 80 * MiB,
    segmentBytes: 20 * MiB,
    storeBytesMax: 64 * MiB,
    arenaBytes: 32 * MiB,
    checkpointAgeMs: 10_000,
    storage: "auto",
    journalDamage: "refuse",
    maxConnections: 1000,
    logLevel: "silent",
    ...changes,
  };
}

async function start(changes: Partial<OriginConfig> = {}): Promise<RunningOrigin> {
  const origin = await startOrigin(config(changes));
  running.push(origin);
  return origin;
}

async function stop(origin: RunningOrigin): Promise<void> {
  running = running.filter((each) => each !== origin);
  await origin.close();
}

async function startError(changes: Partial<OriginConfig>): Promise<ForebayError> {
  const outcome = await start(changes).catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(ForebayError);
  return outcome as ForebayError;
}

const text = { "content-type": "text/plain" };

test("what was acknowledged is there after a restart, producers and all", async () => {
  const first = await start();
  await fetch(`${first.url}/v1/stream/s`, { method: "PUT", headers: text });
  const producer = { ...text, "producer-id": "p", "producer-epoch": "0", "producer-seq": "0" };
  const append = (url: string): Promise<Response> =>
    fetch(`${url}/v1/stream/s`, { method: "POST", headers: producer, body: "once" });
  expect((await append(first.url)).status).toBe(200);
  await stop(first);
  const second = await start();
  expect((await append(second.url)).status).toBe(204);
  expect(await (await fetch(`${second.url}/v1/stream/s`)).text()).toBe("once");
});

test("what a checkpoint put into a run is read from there after a restart, and the journal begins above it", async () => {
  const first = await start({ checkpointAgeMs: 20 });
  await fetch(`${first.url}/v1/stream/s`, { method: "PUT", headers: text });
  const producer = { ...text, "producer-id": "p", "producer-epoch": "0" };
  const append = (url: string, seq: number): Promise<Response> =>
    fetch(`${url}/v1/stream/s`, {
      method: "POST",
      headers: { ...producer, "producer-seq": String(seq) },
      body: `record ${seq};`,
    });
  for (let seq = 0; seq < 10; seq++) {
    expect((await append(first.url, seq)).status).toBe(200);
  }
  const fork = { ...text, "stream-forked-from": "/v1/stream/s" };
  await fetch(`${first.url}/v1/stream/__ds/subscriptions/sub`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ type: "pull-wake", streams: ["s"], wake_stream: "w" }),
  });
  const settled = async (url: string): Promise<boolean> => {
    const { journal, store } = (await (await fetch(`${url}/readyz`)).json()) as Ready;
    return store.checkpointLsn === journal.reserved;
  };
  await expect.poll(() => settled(first.url)).toBe(true);
  await stop(first);

  const second = await start({ checkpointAgeMs: 3_600_000 });
  const ready = (await (await fetch(`${second.url}/readyz`)).json()) as Ready;
  expect(ready.store).toMatchObject({ arenaBytes: 0, checkpointLsn: ready.journal.reserved });
  const all = Array.from({ length: 10 }, (_, seq) => `record ${seq};`).join("");
  expect(await (await fetch(`${second.url}/v1/stream/s`)).text()).toBe(all);
  expect((await append(second.url, 9)).status).toBe(204);
  expect((await append(second.url, 10)).status).toBe(200);
  const part = `?offset=${hex(9)}_${hex(81)}`;
  expect(await (await fetch(`${second.url}/v1/stream/s${part}`)).text()).toBe(
    "record 9;record 10;",
  );
  const forked = await fetch(`${second.url}/v1/stream/f`, {
    method: "PUT",
    headers: { ...fork, "stream-fork-offset": `${hex(3)}_${hex(27)}` },
  });
  expect(forked.status).toBe(201);
  expect(await (await fetch(`${second.url}/v1/stream/f`)).text()).toBe(
    "record 0;record 1;record 2;",
  );
  const subscription = await fetch(`${second.url}/v1/stream/__ds/subscriptions/sub`);
  expect(await subscription.json()).toMatchObject({ type: "pull-wake", wake_stream: "w" });
});

interface Ready {
  readonly journal: { readonly reserved: number };
  readonly store: { readonly checkpointLsn: number };
}

test("/readyz says what holds the bytes, and the data directory is its owner's alone", async () => {
  const origin = await start();
  const ready = (await (await fetch(`${origin.url}/readyz`)).json()) as {
    status: string;
    storage: string;
    ack: string;
  };
  expect(ready.status).toBe("ready");
  expect(["uring", "threads", "node", "buffered", "memory"]).toContain(ready.storage);
  expect(ready.ack).toBe(ready.storage === "memory" ? "memory" : "origin");
  expect(statSync(join(directory, "data")).mode & 0o777).toBe(0o700);
});

test("storage = memory touches no disk, answers ack memory, and says so", async () => {
  const origin = await start({ storage: "memory" });
  const ready: unknown = await (await fetch(`${origin.url}/readyz`)).json();
  expect(ready).toMatchObject({ status: "ready", storage: "memory", ack: "memory" });
  expect(() => statSync(join(directory, "data"))).toThrow("ENOENT");
  await fetch(`${origin.url}/v1/stream/s`, { method: "PUT", headers: text });
  const appended = await fetch(`${origin.url}/v1/stream/s`, {
    method: "POST",
    headers: text,
    body: "x",
  });
  expect([appended.status, appended.headers.get("forebay-ack")]).toEqual([204, "memory"]);
});

test.each(["threads", "node", "buffered"] as const)(
  "storage = %s is what /readyz and the metric name",
  async (storage) => {
    const origin = await start({ storage });
    const ready = (await (await fetch(`${origin.url}/readyz`)).json()) as Record<string, string>;
    // On a file system in memory the name says what that means, and the reason how it is written.
    if (ready["storage"] === "memory") {
      expect(ready["storageReason"]).toMatch(new RegExp(`^${storage}: configured, on `));
      return;
    }
    expect(ready["storage"]).toBe(storage);
    expect(ready["storageReason"]).toMatch(/^configured, on /);
    const metrics = await (await fetch(`${origin.url}/metrics`)).text();
    expect(metrics).toContain(`forebay_journal_storage{backend="${storage}"} 1\n`);
  },
);

test("a port that is taken is port_taken, and the data directory is free again", async () => {
  const first = await start();
  const other = join(directory, "other");
  const error = await startError({ port: first.port, dataDir: other });
  expect(error.code).toBe("port_taken");
  expect(error.message).toContain(String(first.port));
  const second = await start({ dataDir: other });
  expect(second.port).not.toBe(first.port);
});

test("an address of no interface here is config_invalid", async () => {
  const error = await startError({ host: "192.0.2.1", key: "secret" });
  expect(error.code).toBe("config_invalid");
  expect(error.message).toContain("192.0.2.1");
});

test.each(["0.0.0.0", "::", "192.0.2.1", "example.com", "127.0.0.1.example.com"])(
  "%s without a key is key_required before anything is touched",
  async (host) => {
    const error = await startError({ host });
    expect(error.code).toBe("key_required");
    expect(error.message).toContain("FOREBAY_KEY");
    expect(() => statSync(join(directory, "data"))).toThrow("ENOENT");
  },
);

test("a path that is a file is data_unwritable", async () => {
  const path = join(directory, "file");
  await writeFile(path, "");
  expect((await startError({ dataDir: path })).code).toBe("data_unwritable");
  expect((await startError({ dataDir: join(path, "below") })).code).toBe("data_unwritable");
});

test.skipIf(process.getuid?.() === 0)(
  "a directory without write permission is data_unwritable",
  async () => {
    const path = join(directory, "closed");
    await mkdir(path);
    await chmod(path, 0o500);
    expect((await startError({ dataDir: join(path, "data") })).code).toBe("data_unwritable");
  },
);

test("web origins that are none are config_invalid", async () => {
  expect((await startError({ allowedOrigins: ["not an origin"] })).code).toBe("config_invalid");
});

test("a full budget is disk_full for whoever comes, reads go on, nothing is half applied", async () => {
  const origin = await start({ journalBudgetBytes: 40 * MiB });
  const url = `${origin.url}/v1/stream/s`;
  await fetch(url, { method: "PUT", headers: text });
  const body = "b".repeat(4 * MiB);
  const statuses: number[] = [];
  let code = "";
  while (code === "" && statuses.length < 20) {
    const answer = await fetch(url, { method: "POST", headers: text, body });
    statuses.push(answer.status);
    code = answer.status === 204 ? "" : ((await answer.json()) as { code: string }).code;
  }
  expect([statuses.at(-1), code]).toEqual([507, "disk_full"]);
  const taken = statuses.filter((status) => status === 204).length;
  expect(taken).toBeGreaterThanOrEqual(8);
  const tail = (await fetch(url, { method: "HEAD" })).headers.get("stream-next-offset");
  const bytes = taken * 4 * MiB;
  expect(tail).toBe(`${hex(taken)}_${hex(bytes)}`);
  expect((await fetch(`${origin.url}/livez`)).status).toBe(200);
});

const hex = (n: number): string => n.toString(16).padStart(16, "0");

test("a store that is full is store_full", async () => {
  const origin = await start({ storeBytesMax: 3 * MiB });
  const url = `${origin.url}/v1/stream/s`;
  await fetch(url, { method: "PUT", headers: text });
  const codes = new Set<string>();
  for (let i = 0; i < 6; i++) {
    const answer = await fetch(url, { method: "POST", headers: text, body: "b".repeat(MiB) });
    codes.add(answer.status === 204 ? "stored" : ((await answer.json()) as { code: string }).code);
  }
  expect([...codes]).toEqual(["stored", "store_full"]);
});
