import * as fc from "fast-check";
import { expect, test } from "vitest";
import { arrayItems } from "../../../origin/cli/jsonArray.ts";

test("the values come out as the text that they were", () => {
  expect(arrayItems('[1e999, {"a":1,"a":2} ,"x,]\\"[", [1,[2]],-0.10]')).toEqual([
    "1e999",
    '{"a":1,"a":2}',
    '"x,]\\"["',
    "[1,[2]]",
    "-0.10",
  ]);
  expect(arrayItems("[]")).toEqual([]);
  expect(arrayItems(" [ ] ")).toEqual([]);
});

test("any array of JSON values is split where it was joined", () => {
  fc.assert(
    fc.property(fc.array(fc.json()), (values) => {
      expect(arrayItems(`[${values.join(",")}]`)).toEqual(values.map((value) => value.trim()));
    }),
  );
});
