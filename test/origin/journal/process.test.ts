import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openJournal, type Journal } from "../../../origin/journal/mod.ts";
import { clock, random } from "../../../origin/ports/mod.ts";
import { realDisk } from "../../../origin/storage/mod.ts";
import { ForebayError } from "../../../shared/errors/mod.ts";
import { childSizes, ledgerEntry } from "./ledger.ts";

const script = fileURLToPath(new URL("child.ts", import.meta.url));
let dir: string;
let ledger: string;
const children: ChildProcess[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "forebay-journal-"));
  ledger = join(dir, "ledger");
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    await kill(child);
  }
  rmSync(dir, { recursive: true, force: true });
});

async function start(mode: string): Promise<ChildProcess> {
  const args = [script, mode, join(dir, "data"), ledger];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  expect(line.toString()).toMatch(/^open\n/);
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }
}

function acknowledged(): number {
  const lines = readFileSync(ledger, "utf8").trimEnd().split("\n");
  return Number(lines.at(-1));
}

async function recover(check: (n: number, bytes: Uint8Array) => void): Promise<Journal> {
  const events = { onDurable: () => undefined, onFailed: () => undefined };
  const options = { dir: join(dir, "data"), disk: realDisk, clock, random, ...childSizes, events };
  return openJournal(options, check);
}

it("J19 five rounds of kill -9 under load lose nothing that was acknowledged", async () => {
  let before = 0;
  for (let round = 0; round < 5; round++) {
    const child = await start("write");
    await sleep(120 + Math.random() * 250);
    await kill(child);
    let found = 0;
    const journal = await recover((n, bytes) => {
      found += 1;
      if (n !== found || Buffer.compare(bytes, ledgerEntry(n)) !== 0) {
        throw new Error(`entry ${n} is not what was appended, after ${found - 1} others`);
      }
    });
    expect(found).toBeGreaterThanOrEqual(acknowledged());
    expect(acknowledged()).toBeGreaterThan(before);
    expect(found - acknowledged()).toBeLessThanOrEqual(400);
    expect([journal.reserved, journal.durable]).toEqual([found, found]);
    before = found;
    await journal.close();
  }
  expect(before).toBeGreaterThan(500);
}, 40_000);

it("J22 a live lock is refused within 5 s and names the holder; after kill -9 the directory opens", async () => {
  const child = await start("hold");
  const from = performance.now();
  const error = await recover(() => undefined).catch((reason: unknown) => reason);
  const waited = performance.now() - from;
  expect(error).toBeInstanceOf(ForebayError);
  expect((error as ForebayError).code).toBe("data_locked");
  expect((error as ForebayError).message).toContain(`is in use by process ${child.pid}`);
  expect(waited).toBeGreaterThan(4900);
  expect(waited).toBeLessThan(6500);

  const opening = recover(() => undefined);
  await sleep(200);
  await kill(child);
  const killedAt = performance.now();
  const journal = await opening;
  expect(performance.now() - killedAt).toBeLessThan(5000);
  await journal.close();
}, 20_000);

it("J1 an idle open journal keeps no timer and no handle: its process ends by itself", async () => {
  const args = [script, "idle", join(dir, "data"), ledger];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [code] = (await once(child, "close")) as [number];
  expect(code).toBe(0);
  expect(output).toMatch(/^open\nalive by (PipeWrap|TTYWrap|,)*\n$/);
  expect(acknowledged()).toBe(1);
}, 20_000);

it("writes past the page cache on this machine's disk, or says what it does instead", async () => {
  const journal = await recover(() => undefined);
  const { fileSystem, volatile } = await realDisk.space(dir);
  const expected = volatile ? ["memory"] : ["uring", "threads", "node", "buffered"];
  expect(expected, fileSystem).toContain(journal.storage);
  journal.append([ledgerEntry(1)]);
  await journal.flush();
  await journal.close();
  const again = await recover((n, bytes) => {
    expect([n, Buffer.compare(bytes, ledgerEntry(1))]).toEqual([1, 0]);
  });
  expect(again.durable).toBe(1);
  await again.close();
});

it("a path that is no directory is data_unwritable", async () => {
  const events = { onDurable: () => undefined, onFailed: () => undefined };
  const options = { disk: realDisk, clock, random, ...childSizes, events };
  for (const path of [script, join(script, "below")]) {
    const error = await openJournal({ ...options, dir: path }, () => undefined).catch(
      (reason: unknown) => reason,
    );
    expect((error as ForebayError).code).toBe("data_unwritable");
    expect((error as ForebayError).message).toContain(`${path} cannot be written`);
  }
});
