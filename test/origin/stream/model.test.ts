import fc from "fast-check";
import { expect, test } from "vitest";
import { contents } from "./harness.ts";
import { Pair, step } from "./pair.ts";

test("P1 P9 P17 F12 J28 the streams do what a naive model does, before and after crashes", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: "max" }), (steps) => {
      const pair = new Pair();
      for (const each of steps) {
        pair.run(each);
        pair.check();
      }
      pair.commit(0);
      pair.check();
      const { quarantined } = pair.model;
      expect(pair.replies.every(({ reply }) => reply.state === "sent")).toBe(true);
      expect(pair.real.streams.stats().recordsQuarantined).toBe(quarantined.length);
      const written =
        quarantined.length === 0 ? [] : contents(pair.real.streams, "_forebay/quarantine");
      expect(
        written.map((json) => {
          const { stream, code, text } = JSON.parse(json) as Record<string, string>;
          return `${stream} ${code} ${text}`;
        }),
      ).toEqual(quarantined);
    }),
    { numRuns: 150 },
  );
}, 60_000);
