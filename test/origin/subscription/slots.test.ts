import { expect, test } from "vitest";
import { Slots } from "../../../origin/subscription/slots.ts";

interface Running {
  readonly name: string;
  end(): Promise<void>;
}

function bench(max: number) {
  const slots = new Slots(max);
  const running: Running[] = [];
  const add = (name: string, key: number, retry = false): void => {
    slots.add({
      key,
      retry,
      run: () =>
        new Promise<void>((resolve) => {
          running.push({
            name,
            end: async () => {
              running.splice(
                running.findIndex((each) => each.name === name),
                1,
              );
              resolve();
              await Promise.resolve();
              await Promise.resolve();
            },
          });
        }),
    });
  };
  const names = (): string[] => running.map(({ name }) => name);
  const end = (name: string): Promise<void> | undefined =>
    running.find((each) => each.name === name)?.end();
  return { slots, add, names, end };
}

test("so many run at once, the others in the order they came", async () => {
  const { slots, add, names, end } = bench(2);
  for (const [i, name] of ["a", "b", "c", "d"].entries()) {
    add(name, i);
  }
  expect([names(), slots.running, slots.waiting]).toEqual([["a", "b"], 2, 2]);
  await end("b");
  expect(names()).toEqual(["a", "c"]);
  await end("a");
  expect([names(), slots.waiting]).toEqual([["c", "d"], 0]);
});

test("one key runs once at a time, and does not hold up others", async () => {
  const { add, names, end } = bench(3);
  add("a1", 1);
  add("a2", 1);
  add("b", 2);
  expect(names()).toEqual(["a1", "b"]);
  await end("a1");
  expect(names()).toEqual(["b", "a2"]);
});

test("retries take half of the slots at most", async () => {
  const { add, names, end } = bench(4);
  for (let i = 0; i < 4; i++) {
    add(`r${i}`, i, true);
  }
  add("fresh", 9);
  expect(names()).toEqual(["r0", "r1", "fresh"]);
  await end("r0");
  expect(names()).toEqual(["r1", "fresh", "r2"]);
});

test("what waits when it closes never runs", async () => {
  const { slots, add, names, end } = bench(1);
  add("a", 1);
  add("b", 2);
  slots.close();
  await end("a");
  expect(names()).toEqual([]);
});
