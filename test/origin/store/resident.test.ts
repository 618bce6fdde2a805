import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { streamId } from "../../../shared/ids/mod.ts";
import { ResidentStore } from "../../../origin/store/mod.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (value: Uint8Array): string => new TextDecoder().decode(value);
const MiB = 1024 * 1024;

describe("the resident store", () => {
  test("gives records back as they came, whole, by number", () => {
    const store = new ResidentStore(MiB);
    const id = streamId(1);
    store.append(id, [bytes("one"), bytes("two")]);
    store.append(id, [bytes("three")]);
    expect(store.count(id)).toBe(3);
    expect(store.read(id, { from: 0, to: 3, maxBytes: 100 }).map(text)).toEqual([
      "one",
      "two",
      "three",
    ]);
    expect(store.read(id, { from: 1, to: 2, maxBytes: 100 }).map(text)).toEqual(["two"]);
    expect([0, 1, 2, 3].map((record) => store.position(id, record))).toEqual([0, 3, 6, 11]);
  });

  test("keeps no hold on what it was given", () => {
    const store = new ResidentStore(MiB);
    const given = bytes("mine");
    store.append(streamId(1), [given]);
    given.fill(0);
    expect(store.read(streamId(1), { from: 0, to: 1, maxBytes: 9 }).map(text)).toEqual(["mine"]);
  });

  test("P7 cuts at a record boundary; one larger record comes whole", () => {
    const store = new ResidentStore(MiB);
    const id = streamId(1);
    store.append(id, [bytes("aaaa"), bytes("bbbb"), bytes("c".repeat(20))]);
    const read = (from: number, maxBytes: number) =>
      store.read(id, { from, to: 3, maxBytes }).map((record) => record.length);
    expect(read(0, 8)).toEqual([4, 4]);
    expect(read(0, 7)).toEqual([4]);
    expect(read(0, 1)).toEqual([4]);
    expect(read(2, 1)).toEqual([20]);
    expect(read(0, 28)).toEqual([4, 4, 20]);
  });

  test("an unknown stream is empty", () => {
    const store = new ResidentStore(MiB);
    expect(store.count(streamId(7))).toBe(0);
    expect(store.position(streamId(7), 0)).toBe(0);
    expect(store.read(streamId(7), { from: 0, to: 0, maxBytes: 9 })).toEqual([]);
    store.drop(streamId(7));
    expect(store.bytesHeld).toBe(0);
  });

  test("a dropped stream gives all its bytes back and leaves the others", () => {
    const store = new ResidentStore(8 * MiB);
    store.append(streamId(1), [new Uint8Array(300_000)]);
    const alone = store.bytesHeld;
    store.append(streamId(2), [bytes("kept")]);
    for (let i = 0; i < 100; i++) {
      store.append(streamId(1), [new Uint8Array(1000)]);
    }
    expect(store.bytesHeld).toBeGreaterThan(alone + 100_000);
    store.drop(streamId(1));
    expect(store.bytesHeld).toBeLessThan(1000);
    expect(store.read(streamId(2), { from: 0, to: 1, maxBytes: 9 }).map(text)).toEqual(["kept"]);
    store.drop(streamId(2));
    expect(store.bytesHeld).toBe(0);
  });

  test("a full store refuses with the numbers and takes again after a drop", () => {
    const store = new ResidentStore(10_000);
    store.admit(10_000);
    store.append(streamId(1), [new Uint8Array(8000)]);
    const held = store.bytesHeld;
    expect(() => store.admit(5000)).toThrow(
      expect.objectContaining({
        code: "store_full",
        status: 503,
        retryable: true,
        message: `5000 bytes do not fit: the store holds ${held} of at most 10000 bytes`,
      }),
    );
    expect(store.bytesHeld).toBe(held);
    store.drop(streamId(1));
    store.admit(5000);
  });

  test("what it sets aside stays in proportion: 8 bytes and the payload, twice at most", () => {
    const store = new ResidentStore(1024 * MiB);
    const record = new Uint8Array(100);
    for (let i = 0; i < 50_000; i++) {
      store.append(streamId(1), [record]);
    }
    expect(store.bytesHeld).toBeGreaterThan(50_000 * 108);
    expect(store.bytesHeld).toBeLessThan(50_000 * 116 + 2 * MiB);
  });

  test("equals a list of lists, whatever the sizes and ranges", () => {
    const length = fc.oneof(
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 5000 }),
      fc.constantFrom(255, 256, 257, 511, 512, 513, 1024, 70_000),
    );
    const append = fc.record({
      stream: fc.integer({ min: 1, max: 3 }),
      lengths: fc.array(length, { minLength: 1, maxLength: 6 }),
    });
    fc.assert(
      fc.property(
        fc.array(append, { maxLength: 40 }),
        fc.nat(200),
        fc.nat(20_000),
        (appends, at, maxBytes) => {
          const store = new ResidentStore(1024 * MiB);
          const model = new Map<number, Uint8Array[]>();
          let fill = 0;
          for (const { stream, lengths } of appends) {
            const records = lengths.map((n) => new Uint8Array(n).fill(fill++));
            store.append(streamId(stream), records);
            model.set(stream, [...(model.get(stream) ?? []), ...records]);
          }
          for (const [stream, records] of model) {
            const id = streamId(stream);
            const from = at % (records.length + 1);
            const expected: Uint8Array[] = [];
            let taken = 0;
            for (const record of records.slice(from)) {
              taken += record.length;
              if (taken > maxBytes && expected.length > 0) {
                break;
              }
              expected.push(record);
            }
            const got = store.read(id, { from, to: records.length, maxBytes });
            expect(got.length).toBe(expected.length);
            got.forEach((record, i) =>
              expect(Buffer.compare(record, expected[i] ?? record)).toBe(0),
            );
            const before = records.slice(0, from).reduce((sum, record) => sum + record.length, 0);
            expect(store.position(id, from)).toBe(before);
            expect(store.count(id)).toBe(records.length);
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});
