import type { LedgerEntry, Level } from "./ledger.ts";

/** A record as it was found: the request it is of, and its place in it. */
export interface Found {
  readonly producer: string;
  readonly seq: number;
  readonly index: number;
}

/** What the ledger and the product's streams say of each other. */
export interface Account {
  /** Records sworn to. */
  readonly acked: Readonly<Record<Level, number>>;
  /** Of them, found in a stream, and found in the quarantine. */
  readonly stored: number;
  readonly quarantined: number;
  /** Records of ack=none that came, of those sent. */
  readonly unsworn: number;
  /** Each fault in words; empty when the account adds up. */
  readonly faults: readonly string[];
}

const nameOf = ({ producer, seq, index }: Found): string => `${producer}#${seq}.${index}`;

/**
 * Compares: each acknowledged record is there exactly once, in its stream or in the quarantine; nothing is there that was
 * not sent; and in a stream each producer's records stand in the order they were sent in (DESIGN, promises 2, 3, 5).
 */
export function balance(
  entries: readonly LedgerEntry[],
  streams: ReadonlyMap<string, readonly Found[]>,
  quarantined: readonly Found[],
): Account {
  const faults: string[] = [];
  const sent = new Map<string, LedgerEntry>();
  const acked = { none: 0, edge: 0, origin: 0 };
  const owed = new Set<string>();
  for (const entry of entries) {
    for (let index = 0; index < entry.records; index++) {
      const name = `${entry.stream}/${nameOf({ ...entry, index })}`;
      if (entry.what === "sent") {
        sent.set(name, entry);
      } else {
        acked[entry.level] += 1;
        owed.add(name);
      }
    }
  }
  const account = { stored: 0, quarantined: 0, unsworn: 0 };
  const seen = new Set<string>();
  const take = (stream: string, found: Found, where: "stored" | "quarantined"): void => {
    const name = `${stream}/${nameOf(found)}`;
    const entry = sent.get(name);
    if (entry === undefined) {
      faults.push(`${where} but never sent: ${name}`);
    }
    if (seen.has(name)) {
      faults.push(`${where} a second time: ${name}`);
    }
    seen.add(name);
    if (owed.delete(name)) {
      account[where] += 1;
    } else if (entry?.level === "none") {
      account.unsworn += 1;
    }
  };
  for (const [stream, records] of streams) {
    records.forEach((found) => take(stream, found, "stored"));
    // A client that waits for no answer may overtake itself.
    const inOrder = records.filter(
      (found) => sent.get(`${stream}/${nameOf(found)}`)?.level !== "none",
    );
    faults.push(...disorder(stream, inOrder));
  }
  const paths = [...streams.keys()];
  for (const found of quarantined) {
    const stream = paths.find((path) => sent.has(`${path}/${nameOf(found)}`)) ?? "?";
    take(stream, found, "quarantined");
  }
  faults.push(...[...owed].map((name) => `acknowledged and gone: ${name}`));
  return { acked, ...account, faults };
}

function disorder(stream: string, records: readonly Found[]): string[] {
  const last = new Map<string, Found>();
  const faults: string[] = [];
  for (const found of records) {
    const before = last.get(found.producer);
    if (
      before !== undefined &&
      (found.seq < before.seq || (found.seq === before.seq && found.index <= before.index))
    ) {
      faults.push(`out of order in ${stream}: ${nameOf(found)} after ${nameOf(before)}`);
    }
    last.set(found.producer, found);
  }
  return faults;
}
