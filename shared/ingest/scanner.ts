import { ForebayError } from "../errors/mod.ts";
import { limits } from "../limits.ts";
import { utf8Text } from "../utf8/mod.ts";

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openArray = 0x5b;
const backslash = 0x5c;
const closeArray = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39;
const isHex = (byte: number): boolean =>
  isDigit(byte) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
/** What may follow a backslash, `u` apart. */
const escapes: ReadonlySet<number> = new Set(
  ['"', "\\", "/", "b", "f", "n", "r", "t"].map((c) => c.charCodeAt(0)),
);

/** What `byteAt` gives beyond the end: no byte of JSON, so every expectation fails there. */
const endOfText = -1;

/**
 * Checks JSON text (RFC 8259) where it lies, without building a value: memory stays flat whatever the text holds, keys like
 * `__proto__` are only bytes, and numbers of any size stay exact. It takes what `JSON.parse` takes, of at most
 * `jsonDepthMax` nested arrays and objects; so a byte order mark is refused, and a lone surrogate escape is not.
 * UTF-8 is checked at the end, all at once, if there was a byte above ASCII.
 *
 * Methods leave `at` behind what they took and throw `bad_json` with the byte's position, or `json_too_deep`.
 */
export class JsonScanner {
  readonly bytes: Uint8Array;
  at = 0;
  private seen = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** One value and nothing but white space around it. Returns its bytes without that space. */
  onlyValue(): Uint8Array {
    this.space();
    const start = this.at;
    this.value(0);
    const end = this.at;
    this.finish();
    return this.bytes.subarray(start, end);
  }

  finish(): void {
    this.space();
    if (this.at < this.bytes.length) {
      throw this.unexpected("the end");
    }
    if (this.seen >= 0x80 && utf8Text(this.bytes) === undefined) {
      throw new ForebayError("bad_utf8", "the JSON text has bytes that are not valid UTF-8");
    }
  }

  /** `depth` arrays and objects stand around the value. */
  value(depth: number): void {
    const byte = this.byteAt();
    switch (byte) {
      case quote:
        return this.string();
      case openObject:
        return this.object(depth + 1);
      case openArray:
        return this.array(depth + 1);
      case 0x74:
        return this.literal("true");
      case 0x66:
        return this.literal("false");
      case 0x6e:
        return this.literal("null");
      default:
        return this.number();
    }
  }

  /** Takes `byte` if it stands here. */
  accept(byte: number): boolean {
    const here = this.byteAt() === byte;
    if (here) {
      this.at++;
    }
    return here;
  }

  space(): void {
    const { bytes } = this;
    let at = this.at;
    for (
      let byte = bytes[at];
      byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
      byte = bytes[at]
    ) {
      at++;
    }
    this.at = at;
  }

  unexpected(wanted: string): ForebayError {
    const byte = this.byteAt();
    const found =
      byte === endOfText
        ? "the text ends"
        : byte > 0x20 && byte < 0x7f
          ? `found ${JSON.stringify(String.fromCharCode(byte))}`
          : `found byte 0x${byte.toString(16).padStart(2, "0")}`;
    return new ForebayError("bad_json", `${found} at byte ${this.at}, expected ${wanted}`);
  }

  private byteAt(): number {
    return this.bytes[this.at] ?? endOfText;
  }

  private object(depth: number): void {
    this.enter(depth);
    if (this.accept(closeObject)) {
      return;
    }
    do {
      this.space();
      if (this.byteAt() !== quote) {
        throw this.unexpected("a key");
      }
      this.string();
      this.space();
      if (!this.accept(colon)) {
        throw this.unexpected('":"');
      }
      this.space();
      this.value(depth);
      this.space();
    } while (this.accept(comma));
    if (!this.accept(closeObject)) {
      throw this.unexpected('"," or "}"');
    }
  }

  private array(depth: number): void {
    this.enter(depth);
    if (this.accept(closeArray)) {
      return;
    }
    do {
      this.space();
      this.value(depth);
      this.space();
    } while (this.accept(comma));
    if (!this.accept(closeArray)) {
      throw this.unexpected('"," or "]"');
    }
  }

  private enter(depth: number): void {
    if (depth > limits.jsonDepthMax) {
      throw new ForebayError(
        "json_too_deep",
        `at byte ${this.at} the JSON is nested deeper than the limit of ${limits.jsonDepthMax}`,
      );
    }
    this.at++;
    this.space();
  }

  private string(): void {
    const { bytes } = this;
    let at = this.at + 1;
    let seen = 0;
    for (;;) {
      const byte = bytes[at] ?? endOfText;
      if (byte === quote) {
        break;
      }
      if (byte < 0x20) {
        this.at = at;
        throw this.unexpected("a character of the string or its closing quote");
      }
      if (byte === backslash) {
        this.at = at + 1;
        this.escape();
        at = this.at;
      } else {
        seen |= byte;
        at++;
      }
    }
    this.seen |= seen;
    this.at = at + 1;
  }

  private escape(): void {
    const byte = this.byteAt();
    if (escapes.has(byte)) {
      this.at++;
      return;
    }
    if (byte !== 0x75) {
      throw this.unexpected("an escape");
    }
    this.at++;
    for (let i = 0; i < 4; i++) {
      if (!isHex(this.byteAt())) {
        throw this.unexpected("a hex digit");
      }
      this.at++;
    }
  }

  private number(): void {
    const start = this.at;
    this.accept(0x2d);
    if (!this.accept(0x30)) {
      this.digits(this.at === start ? "a value" : "a digit");
    }
    if (this.accept(0x2e)) {
      this.digits("a digit");
    }
    const exponent = this.byteAt();
    if (exponent === 0x65 || exponent === 0x45) {
      this.at++;
      if (!this.accept(0x2b)) {
        this.accept(0x2d);
      }
      this.digits("a digit");
    }
  }

  private digits(wanted: string): void {
    if (!isDigit(this.byteAt())) {
      throw this.unexpected(wanted);
    }
    do {
      this.at++;
    } while (isDigit(this.byteAt()));
  }

  private literal(word: string): void {
    for (let i = 0; i < word.length; i++) {
      if (this.byteAt() !== word.charCodeAt(i)) {
        throw this.unexpected(word);
      }
      this.at++;
    }
  }
}
