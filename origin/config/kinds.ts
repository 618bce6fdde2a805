import { z } from "zod";

/** How one sort of value is read: from text (flags, environment) and from TOML, and what it may be. */
export interface Kind<T> {
  /** The TOML-like value that a text stands for; text that stands for nothing is left as it is. */
  fromText(text: string): unknown;
  readonly schema: z.ZodType<T>;
  /** For humans: "… is not accepted; give <accepts>". */
  readonly accepts: string;
}

const digits = /^\d+$/;
const numberOrText = (text: string): unknown =>
  digits.test(text.trim()) ? Number(text.trim()) : text;
const asItIs = (text: string): unknown => text;

const byteUnits: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
  TIB: 2 ** 40,
};
const msUnits: Readonly<Record<string, number>> = {
  MS: 1,
  S: 1000,
  M: 60_000,
  H: 3_600_000,
  D: 86_400_000,
};

const withUnit = /^(\d+(?:\.\d+)?)\s*([A-Za-z]+)$/;

/** The whole number of base units that "1.5MiB" or "30s" stands for; anything else comes back as it is. */
function scaled(value: unknown, units: Readonly<Record<string, number>>): unknown {
  const m = typeof value === "string" ? withUnit.exec(value.trim()) : null;
  const factor = m?.[2] === undefined ? undefined : units[m[2].toUpperCase()];
  if (m?.[1] === undefined || factor === undefined) {
    return value;
  }
  return Math.round(Number(m[1]) * factor);
}

export function wholeNumber(min: number, max: number): Kind<number> {
  return {
    fromText: numberOrText,
    schema: z.int().min(min).max(max),
    accepts: `a whole number from ${min} to ${max}`,
  };
}

/** Bytes, or text with a unit: "64MiB", "10 GB". */
export function size(min: number, max: number): Kind<number> {
  return {
    fromText: numberOrText,
    schema: z.preprocess((value) => scaled(value, byteUnits), z.int().min(min).max(max)),
    accepts: `bytes or a size such as 64MiB, from ${sizeText(min)} to ${sizeText(max)}`,
  };
}

/** Milliseconds, or text with a unit: "500ms", "30s", "5m". */
export function duration(min: number, max: number): Kind<number> {
  return {
    fromText: numberOrText,
    schema: z.preprocess((value) => scaled(value, msUnits), z.int().min(min).max(max)),
    accepts: `milliseconds or a time such as 30s, from ${min}ms to ${durationText(max)}`,
  };
}

export function matching(pattern: RegExp, accepts: string): Kind<string> {
  return { fromText: asItIs, schema: z.string().regex(pattern), accepts };
}

/** Text, or null when it was never given. */
export function optionalMatching(pattern: RegExp, accepts: string): Kind<string | null> {
  return { fromText: asItIs, schema: z.string().regex(pattern), accepts };
}

export function list(item: RegExp, accepts: string): Kind<readonly string[]> {
  return {
    fromText: (value) =>
      value
        .split(",")
        .map((part) => part.trim())
        .filter((part) => part !== ""),
    schema: z.array(z.string().regex(item)),
    accepts: `a list (separated by commas in flags and the environment) of ${accepts}`,
  };
}

export function oneOf<const T extends string>(values: readonly [T, ...T[]]): Kind<T> {
  return { fromText: asItIs, schema: z.enum(values), accepts: `one of ${values.join(", ")}` };
}

const truths: Readonly<Record<string, boolean>> = {
  true: true,
  "1": true,
  yes: true,
  on: true,
  false: false,
  "0": false,
  no: false,
  off: false,
};

export const yesOrNo: Kind<boolean> = {
  fromText: (value) => truths[value.trim().toLowerCase()] ?? value,
  schema: z.boolean(),
  accepts: "true or false",
};

/** Bytes in the largest unit that shows them whole, e.g. "64MiB"; bare bytes otherwise. */
export function sizeText(bytes: number): string {
  for (const [unit, factor] of [
    ["TiB", 2 ** 40],
    ["GiB", 2 ** 30],
    ["MiB", 2 ** 20],
    ["KiB", 2 ** 10],
  ] as const) {
    if (bytes >= factor && bytes % factor === 0) {
      return `${bytes / factor}${unit}`;
    }
  }
  return `${bytes}B`;
}

/** Milliseconds in the largest unit that shows them whole, e.g. "30s". */
export function durationText(ms: number): string {
  for (const [unit, factor] of [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1000],
  ] as const) {
    if (ms >= factor && ms % factor === 0) {
      return `${ms / factor}${unit}`;
    }
  }
  return `${ms}ms`;
}
