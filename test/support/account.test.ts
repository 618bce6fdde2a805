import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { balance, type Found } from "./account.ts";
import { Ledger, readLedger, type LedgerEntry, type Level } from "./ledger.ts";

const entry = (
  what: LedgerEntry["what"],
  seq: number,
  level: Level = "edge",
  records = 2,
): LedgerEntry => ({ what, stream: "s", producer: "p@0", seq, records, level });
const found = (seq: number, index: number, producer = "p@0"): Found => ({ producer, seq, index });
const whole = (seq: number): Found[] => [found(seq, 0), found(seq, 1)];
const sworn = [0, 1].flatMap((seq) => [entry("sent", seq), entry("acked", seq)]);
const faults = (records: Found[], entries: LedgerEntry[] = sworn, held: Found[] = []) =>
  balance(entries, new Map([["s", records]]), held).faults;

test("F21 an account that adds up has no fault, quarantined and unsworn records counted apart", () => {
  const entries = [...sworn, entry("sent", 2), entry("acked", 2), entry("sent", 3, "none")];
  const streams = new Map([["s", [found(3, 0), ...whole(0), ...whole(1)]]]);
  expect(balance(entries, streams, whole(2))).toEqual({
    acked: { none: 0, edge: 6, origin: 0 },
    stored: 4,
    quarantined: 2,
    unsworn: 1,
    faults: [],
  });
});

test("each way in which it may not add up is named", () => {
  expect(faults(whole(0))).toEqual([
    "acknowledged and gone: s/p@0#1.0",
    "acknowledged and gone: s/p@0#1.1",
  ]);
  expect(faults([...whole(0), ...whole(1), found(1, 1)])).toEqual([
    "stored a second time: s/p@0#1.1",
    "out of order in s: p@0#1.1 after p@0#1.1",
  ]);
  expect(faults([...whole(1), ...whole(0)])).toEqual(["out of order in s: p@0#0.0 after p@0#1.1"]);
  expect(faults([...whole(0), ...whole(1), found(0, 0, "q@0")])).toEqual([
    "stored but never sent: s/q@0#0.0",
  ]);
  expect(faults([...whole(0), ...whole(1)], sworn, [found(0, 0)])).toEqual([
    "quarantined a second time: s/p@0#0.0",
  ]);
});

test("what is noted is in the file when the note resolves; a line cut off at its end is left out", async () => {
  const dir = mkdtempSync(join(tmpdir(), "forebay-ledger-"));
  const ledger = new Ledger(join(dir, "ledger"));
  const entries = Array.from({ length: 50 }, (_, seq) => entry("sent", seq));
  await ledger.note(entry("acked", 99));
  expect(readLedger(ledger.path)).toEqual([entry("acked", 99)]);
  await Promise.all(entries.map((each) => ledger.note(each)));
  appendFileSync(ledger.path, '{"what":"ack');
  expect(readLedger(ledger.path)).toEqual([entry("acked", 99), ...entries]);
  ledger.close();
  rmSync(dir, { recursive: true });
});
