import fc from "fast-check";
import { expect, test } from "vitest";
import { streamId } from "../../../shared/ids/mod.ts";
import { contents, isRefused } from "./harness.ts";
import { Pair, paths, step } from "./pair.ts";

interface Held {
  readonly stream: string;
  readonly code: string;
  readonly records: readonly { readonly text: string }[];
}

test("P1 P5 P9 P17 F12 J28 the streams do what a naive model does, before and after crashes", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: "max" }), (steps) => {
      const pair = new Pair();
      for (const each of steps) {
        pair.run(each);
        pair.check();
      }
      pair.commit(0);
      pair.check();
      const { quarantined, lives } = pair.model;
      expect(pair.replies.every(({ reply }) => reply.state === "sent")).toBe(true);
      expect(pair.real.streams.stats().recordsQuarantined).toBe(quarantined.length);
      const written =
        quarantined.length === 0 ? [] : contents(pair.real.streams, "_forebay/quarantine");
      expect(
        written.map((json) => {
          const held = JSON.parse(json) as Held;
          return `${held.stream} ${held.code} ${held.records.map(({ text }) => text).join("+")}`;
        }),
      ).toEqual(quarantined);
      for (const path of paths) {
        pair.run({ do: "delete", path });
      }
      pair.commit(0);
      pair.check();
      // No reference is left: all is given back but the quarantine.
      const { streams, store } = pair.real;
      const meta = streams.meta("_forebay/quarantine");
      const kept = isRefused(meta) ? 0 : meta.id;
      const ids = Array.from({ length: lives + 2 }, (_, n) => n + 1).filter((id) => id !== kept);
      expect(ids.map((id) => store.count(streamId(id)))).toEqual(ids.map(() => 0));
    }),
    { numRuns: 300 },
  );
}, 60_000);
