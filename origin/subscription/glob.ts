import { ForebayError } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import { normalizeStreamPath } from "../../shared/protocol/mod.ts";

type Segment =
  | { readonly kind: "one" | "any" }
  | { readonly kind: "literal"; readonly text: string };

/**
 * A pattern over stream paths: `*` is one segment, `**` any number of them, everything else itself, spelled as paths
 * are (a literal star is `%2A`).
 *
 * The pattern is an automaton whose states are the bits of one integer: bit i is set when the segments read so far can
 * be the pattern's first i. One pass over the path, whatever the pattern: nothing is tried twice.
 */
export class Glob {
  /** In canonical spelling. */
  readonly text: string;
  /** Bit i: the pattern's segment i takes any one segment, or any number. */
  readonly #one: number;
  readonly #any: number;
  /** Literal segment → the bits where the pattern has it. */
  readonly #literals: ReadonlyMap<string, number>;
  readonly #end: number;

  /** @throws ForebayError `bad_subscription` | `bad_path` */
  constructor(pattern: string) {
    const segments = segmentsOf(pattern);
    const literals = new Map<string, number>();
    let one = 0;
    let any = 0;
    segments.forEach((segment, i) => {
      if (segment.kind === "literal") {
        literals.set(segment.text, (literals.get(segment.text) ?? 0) | (1 << i));
      } else if (segment.kind === "one") {
        one |= 1 << i;
      } else {
        any |= 1 << i;
      }
    });
    this.text = segments.map(spelled).join("/");
    this.#one = one;
    this.#any = any;
    this.#literals = literals;
    this.#end = 1 << segments.length;
  }

  matches(path: string): boolean {
    let states = this.#skip(1);
    for (let from = 0; from <= path.length && states !== 0;) {
      const slash = path.indexOf("/", from);
      const to = slash === -1 ? path.length : slash;
      const takes = this.#one | (this.#literals.get(path.slice(from, to)) ?? 0);
      states = this.#skip(((states & takes) << 1) | (states & this.#any));
      from = to + 1;
    }
    return (states & this.#end) !== 0;
  }

  /** `**` may stand for nothing. Two of them never stand side by side, so one step is all. */
  #skip(states: number): number {
    return states | ((states & this.#any) << 1);
  }
}

function segmentsOf(pattern: string): Segment[] {
  if (pattern.length > limits.globBytesMax) {
    throw refused(pattern, `has ${pattern.length} characters, at most ${limits.globBytesMax}`);
  }
  const segments: Segment[] = [];
  for (const text of pattern.split("/")) {
    if (text === "**") {
      if (segments.at(-1)?.kind !== "any") {
        segments.push({ kind: "any" });
      }
    } else if (text === "*") {
      segments.push({ kind: "one" });
    } else if (text.includes("*")) {
      throw refused(pattern, `has a * that is not a whole segment; a literal one is spelled %2A`);
    } else {
      const literals = normalizeStreamPath(text).split("/");
      segments.push(...literals.map((each) => ({ kind: "literal" as const, text: each })));
    }
  }
  if (segments.length > limits.globSegmentsMax) {
    throw refused(pattern, `has ${segments.length} segments, at most ${limits.globSegmentsMax}`);
  }
  return segments;
}

function spelled(segment: Segment): string {
  if (segment.kind === "literal") {
    return segment.text.replaceAll("*", "%2A");
  }
  return segment.kind === "one" ? "*" : "**";
}

function refused(pattern: string, why: string): ForebayError {
  const shown = JSON.stringify(pattern.slice(0, 200));
  return new ForebayError("bad_subscription", `the pattern ${shown} ${why}`);
}
