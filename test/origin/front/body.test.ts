import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { BodyInParts } from "../../../origin/front/body.ts";
import { HeldBytes } from "../../../origin/front/mod.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** What the process really holds, bytes. */
function held(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const count = 200_000;

test("a body that comes byte by byte costs about its bytes, not an object for each", () => {
  let whole = "";
  const parts = new BodyInParts(count, new HeldBytes(count), {
    onBody: (body) => (whole = Buffer.from(body).toString()),
    onBodyRefused: () => {},
    onBodyAborted: () => {},
  });
  const before = held();
  let refusals = 0;
  for (let i = 0; i < count; i++) {
    refusals += parts.add(Buffer.from(String(i % 10))) === null ? 0 : 1;
  }
  const after = held();
  expect(refusals).toBe(0);
  parts.end();
  expect(whole).toBe("0123456789".repeat(count / 10));
  expect(after - before).toBeLessThan(5 * count);
});

test("a body in one piece is that piece", () => {
  const piece = Buffer.from("abc");
  let got: Uint8Array | undefined;
  const parts = new BodyInParts(3, new HeldBytes(3), {
    onBody: (body) => (got = body),
    onBodyRefused: () => {},
    onBodyAborted: () => {},
  });
  parts.add(piece);
  parts.end();
  expect(got).toBe(piece);
});

test.each([
  [1, 1],
  [1, 1023],
  [1, 1024],
  [1024, 1],
  [1, 65_536, 1, 1],
  [65_536, 65_536, 3],
])("pieces of %i, %i … bytes are put together in their order", (...sizes) => {
  const pieces = sizes.map((size, i) => Buffer.alloc(size, i + 1));
  let got: Uint8Array | undefined;
  const parts = new BodyInParts(1_000_000, new HeldBytes(1_000_000), {
    onBody: (body) => (got = body),
    onBodyRefused: () => {},
    onBodyAborted: () => {},
  });
  pieces.forEach((piece) => parts.add(piece));
  parts.end();
  expect(Buffer.compare(Buffer.from(got ?? []), Buffer.concat(pieces))).toBe(0);
});
