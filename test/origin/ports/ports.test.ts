import { describe, expect, it, vi } from "vitest";
import { clock, endOfTurn, random } from "../../../origin/ports/mod.ts";

describe("clock", () => {
  it("tells ms since the Unix epoch", () => {
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(1000);
  });

  it("fires once after the wait, and never when cancelled", async () => {
    let fired = 0;
    clock.after(5, () => {
      fired += 1;
    });
    clock
      .after(5, () => {
        fired += 100;
      })
      .cancel();
    await new Promise((resolve) => {
      setTimeout(resolve, 40);
    });
    expect(fired).toBe(1);
  });

  it("waits longer than Node's longest timer", () => {
    vi.useFakeTimers();
    try {
      let fired = 0;
      const wait = 2 ** 31 + 5000;
      clock.after(wait, () => {
        fired += 1;
      });
      vi.advanceTimersByTime(wait - 1);
      expect(fired).toBe(0);
      vi.advanceTimersByTime(1);
      expect(fired).toBe(1);
    } finally {
      vi.useRealTimers();
    }
  });
});

it("random gives numbers in [0, 1) and bytes", () => {
  const numbers = Array.from({ length: 1000 }, () => random.next());
  expect(numbers.every((n) => n >= 0 && n < 1)).toBe(true);
  expect(new Set(numbers).size).toBe(1000);
  expect(random.bytes(16)).toHaveLength(16);
  expect(random.bytes(16)).not.toEqual(random.bytes(16));
});

it("endOfTurn runs after the microtasks and I/O callbacks of the turn", async () => {
  const order: string[] = [];
  await new Promise<void>((resolve) => {
    endOfTurn(() => {
      order.push("end");
      resolve();
    });
    queueMicrotask(() => order.push("microtask"));
    order.push("now");
  });
  expect(order).toEqual(["now", "microtask", "end"]);
});
