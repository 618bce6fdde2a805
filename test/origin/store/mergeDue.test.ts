import { expect, test } from "vitest";
import { mergeDue } from "../../../origin/store/mergeDue.ts";

const MiB = 1024 * 1024;

test("four neighbours of one tier are merged, what is smaller between them too, larger ones part them", () => {
  expect(mergeDue([])).toBeNull();
  expect(mergeDue([1, 1, 1])).toBeNull();
  expect(mergeDue([1, 1, 1, 1])).toEqual({ from: 0, to: 4 });
  expect(mergeDue([100 * MiB, 1, 1, 1, 1, 1])).toEqual({ from: 1, to: 5 });
  expect(mergeDue([1, 1, 100 * MiB, 1, 1])).toBeNull();
  expect(mergeDue([1, 3 * MiB, 3 * MiB, 1, 3 * MiB, 3 * MiB, 1])).toEqual({ from: 1, to: 6 });
  expect(mergeDue([3 * MiB, 3 * MiB, 3 * MiB, 100 * MiB, 1])).toBeNull();
});

test("what is too large or may not be touched is left alone", () => {
  const huge = 5 * 1024 * MiB;
  expect(mergeDue([huge, huge, huge, huge, huge])).toBeNull();
  expect(mergeDue([1, 1, Infinity, 1, 1])).toBeNull();
  expect(mergeDue([1, 1, Infinity, 1, 1, 1, 1])).toEqual({ from: 3, to: 7 });
});

test("runs stay few however many checkpoints there are", () => {
  let sizes: number[] = [];
  let most = 0;
  let written = 0;
  for (let n = 0; n < 20_000; n++) {
    sizes.push(MiB);
    for (let plan = mergeDue(sizes); plan !== null; plan = mergeDue(sizes)) {
      const sum = sizes.slice(plan.from, plan.to).reduce((a, b) => a + b, 0);
      written += sum;
      sizes = [...sizes.slice(0, plan.from), sum, ...sizes.slice(plan.to)];
    }
    most = Math.max(most, sizes.length);
  }
  expect(most).toBeLessThan(40);
  // Each byte is written again once a tier.
  expect(written / (20_000 * MiB)).toBeLessThan(8);
});
