/** The header fields the origin looks at, in lower case; each may come once. */
const singular = [
  "host",
  "content-type",
  "content-length",
  "content-encoding",
  "transfer-encoding",
  "authorization",
  "origin",
  "forebay-ack",
  "forebay-public-url",
  "stream-seq",
  "stream-closed",
  "stream-ttl",
  "stream-expires-at",
  "stream-expected-offset",
  "stream-forked-from",
  "stream-fork-offset",
  "stream-fork-sub-offset",
  "producer-id",
  "producer-epoch",
  "producer-seq",
  "access-control-request-method",
  "access-control-request-headers",
] as const;
/** Lists: a second field continues the first (RFC 9110 §5.3). */
const lists = ["if-none-match"] as const;

export type FieldName = (typeof singular)[number] | (typeof lists)[number];

const slots = new Map<string, number>([...singular, ...lists].map((name, i) => [name, i]));

/** The wanted header fields of one request, found in one pass. */
export class Head {
  /** Bytes of all fields with `: ` and line ends. */
  bytes = 0;
  /** A singular field that came twice, or null. */
  duplicate: string | null = null;
  readonly #values: (string | undefined)[] = [];

  /** `raw`: name, value, name, value … as node:http's `rawHeaders`. */
  static ofRaw(raw: readonly string[]): Head {
    const head = new Head();
    for (let i = 0; i + 1 < raw.length; i += 2) {
      head.add(raw[i] as string, raw[i + 1] as string);
    }
    return head;
  }

  /** The next field as it came, its value without the white space around it. */
  add(name: string, value: string): void {
    this.bytes += name.length + value.length + 4;
    const slot = slots.get(name) ?? slots.get(name.toLowerCase());
    if (slot !== undefined) {
      this.#set(slot, value);
    }
  }

  /** The field's value, null when it is absent or empty. */
  get(name: FieldName): string | null {
    const slot = slots.get(name) as number;
    return this.#values[slot] || null;
  }

  /** The field's value, null when it is absent. */
  exact(name: FieldName): string | null {
    return this.#values[slots.get(name) as number] ?? null;
  }

  #set(slot: number, value: string): void {
    const before = this.#values[slot];
    if (before === undefined) {
      this.#values[slot] = value;
    } else if (slot >= singular.length) {
      this.#values[slot] = `${before}, ${value}`;
    } else {
      this.duplicate ??= singular[slot] as string;
    }
  }
}
