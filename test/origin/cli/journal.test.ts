import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openJournal, type Journal } from "../../../origin/journal/mod.ts";
import { clock, random } from "../../../origin/ports/mod.ts";
import { realDisk } from "../../../origin/storage/mod.ts";
import { lsn } from "../../../shared/ids/mod.ts";
import { runCli } from "./terminal.ts";

let data: string;
const open: Journal[] = [];
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "forebay-journal-cli-"));
});
afterEach(async () => {
  for (const journal of open.splice(0)) {
    await journal.close();
  }
  rmSync(data, { recursive: true, force: true });
});

/** Seven entries of 3000 bytes in segments of 16 KiB; the first `trimmed` are trimmed. */
async function written(trimmed = 0): Promise<Journal> {
  const journal = await openJournal(
    {
      ...{ dir: data, disk: realDisk, clock, random },
      ...{ segmentBytes: 16 * 1024, budgetBytes: 1024 * 1024 },
      events: { onDurable: () => undefined, onFailed: () => undefined },
    },
    () => undefined,
  );
  open.push(journal);
  for (let i = 0; i < 7; i++) {
    journal.append([new Uint8Array(3000).fill(i)]);
    await journal.flush();
  }
  journal.trim(lsn(trimmed));
  return journal;
}

async function closed(): Promise<void> {
  await open.pop()?.close();
}

const cli = (...args: string[]) => runCli(["journal", ...args, "--data", data], { cwd: "/" });

function damage(name: string): () => void {
  const path = join(data, "journal/0", name);
  const bytes = readFileSync(path);
  const flip = (): void => {
    bytes[4096 + 100] = (bytes[4096 + 100] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  };
  flip();
  return flip;
}

describe("help", () => {
  test.each([["ls"], ["inspect"], ["verify"], ["quarantine", "ls"], ["quarantine", "restore"]])(
    "%s %s shows examples",
    async (...command) => {
      const { code, stdout } = await runCli(["journal", ...command, "--help"]);
      expect(code).toBe(0);
      expect(stdout).toMatch(/\nExamples:\n {2}forebay journal /);
      expect(stdout).toContain("--json");
      expect(stdout).toContain("--data");
    },
  );
});

describe("journal ls, inspect, verify", () => {
  test("show a journal that is in use, and change nothing", async () => {
    await written();
    const { code, stdout } = await cli("ls");
    expect(code).toBe(0);
    const [head, ...segments] = stdout.trimEnd().split("\n");
    expect(head).toMatch(/journal\/0 {2}id [0-9a-f]{32} {2}head 1 {2}active 4 {2}trimmed to LSN 0/);
    expect(segments.slice(0, 4)).toEqual([
      "0000000000000001.segment  sealed   16384 of 16384 bytes  3 batches  2 entries  LSN 1–2",
      "0000000000000002.segment  sealed   16384 of 16384 bytes  3 batches  2 entries  LSN 3–4",
      "0000000000000003.segment  sealed   16384 of 16384 bytes  3 batches  2 entries  LSN 5–6",
      "0000000000000004.segment  active   8192 of 16384 bytes  1 batches  1 entries  LSN 7–7",
    ]);
    const verified = await cli("verify");
    expect(verified).toMatchObject({ code: 0, stderr: "" });
    expect(verified.stdout).toContain("is whole: 7 entries above LSN 0, the last is 7 (sealed 3,");
    const one = await cli("inspect", "2");
    expect(one.stdout).toBe(
      [
        "0000000000000002.segment @4096  seq 4  term 1  durable 3  LSN 3–3  1 entries  3004 bytes",
        "0000000000000002.segment @8192  seq 5  term 1  durable 4  LSN 4–4  1 entries  3004 bytes",
        "0000000000000002.segment @12288  seq 6  term 1  durable 5  SEAL  0 entries  0 bytes",
        "",
      ].join("\n"),
    );
    // Still writable by its owner.
    open[0]?.append([new Uint8Array(10)]);
    await open[0]?.flush();
  });

  test("--json: one document per line", async () => {
    await written();
    await closed();
    const survey = JSON.parse((await cli("ls", "--json")).stdout);
    expect(survey).toMatchObject({ head: 1, active: 4, trimmed: 0, watermarkDamage: null });
    expect(survey.segments[0]).toMatchObject({
      state: "sealed",
      firstLsn: 1,
      lastLsn: 2,
      why: null,
    });
    const batches = (await cli("inspect", "--json")).stdout.trimEnd().split("\n");
    expect(batches).toHaveLength(11);
    expect(JSON.parse(batches[1] ?? "")).toEqual({
      ...{ segment: "0000000000000001.segment", position: 8192, seq: 2, term: 1 },
      ...{ firstLsn: 2, lastLsn: 2, entries: 1, bytes: 3004, durableSeq: 1, seal: false },
    });
    expect(JSON.parse((await cli("verify", "--json")).stdout)).toMatchObject({
      lastLsn: 7,
      entries: 7,
      findings: { sealed: 3, cleanEnd: 1 },
    });
  });

  test("damage: exit code 65, the place, and nothing changed", async () => {
    await written();
    await closed();
    damage("0000000000000002.segment");
    const { code, stdout, stderr } = await cli("verify");
    expect([code, stdout]).toEqual([65, ""]);
    expect(stderr).toMatch(
      /^error journal_corrupt: .*2\.segment: the chain ends before SEAL at offset 4096/,
    );
  });

  test("what is not there is said", async () => {
    const nothing = await cli("ls");
    expect(nothing.code).toBe(78);
    expect(nothing.stderr).toContain(`${data} is no data directory: it has no journal`);
    await written();
    const missing = await cli("inspect", "ff");
    expect(missing.code).toBe(78);
    expect(missing.stderr).toContain("00000000000000ff.segment is not in");
  });
});

describe("journal quarantine", () => {
  async function setAside(): Promise<() => void> {
    await written();
    await closed();
    const repair = damage("0000000000000002.segment");
    const journal = await openJournal(
      {
        ...{ dir: data, disk: realDisk, clock, random, onDamage: "quarantine" },
        ...{ segmentBytes: 16 * 1024, budgetBytes: 1024 * 1024 },
        events: { onDurable: () => undefined, onFailed: () => undefined },
      },
      () => undefined,
    );
    open.push(journal);
    return () => {
      repair();
      const from = join(data, "journal/0/0000000000000002.segment");
      writeFileSync(
        join(data, "journal/0.quarantine-1/0000000000000002.segment"),
        readFileSync(from),
      );
      rmSync(from);
    };
  }

  test("ls says what can be read and why it was set aside", async () => {
    await setAside();
    const { stdout } = await cli("quarantine", "ls");
    expect(stdout).toMatch(/^0\.quarantine-1 {2}readable 1–2, 4–7 {2}missing 3–3 {2}.*before SEAL/);
    const shown = JSON.parse((await cli("quarantine", "ls", "--json")).stdout);
    expect(shown).toMatchObject({
      name: "0.quarantine-1",
      readable: [
        [1, 2],
        [4, 7],
      ],
      missing: [[3, 3]],
    });
  });

  test("restore: refused while a server runs and while it is damaged, then put back", async () => {
    const repair = await setAside();
    const live = await cli("quarantine", "restore", "0.quarantine-1");
    expect([live.code, live.stderr]).toEqual([75, expect.stringMatching(/^error data_locked/)]);
    await closed();
    expect((await cli("quarantine", "restore", "0.quarantine-1")).code).toBe(65);
    repair();
    const { code, stdout } = await cli("quarantine", "restore", "0.quarantine-1");
    expect(code).toBe(0);
    expect(stdout).toBe(
      `0.quarantine-1 is ${data}/journal/0 again; what was there is now 0.quarantine-2\n`,
    );
    expect(JSON.parse((await cli("verify", "--json")).stdout)).toMatchObject({ entries: 7 });
  });
});
