/**
 * Just enough of a scanner to look at TypeScript without its comments, or without its comments and
 * the text of its strings. What is taken out becomes spaces; line breaks stay, so that line numbers
 * hold. Regular expressions are told from divisions by what stands before the slash.
 */
type Keep = "strings" | "code";

const regexpMayFollow = /(?:^|[(,=:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of|void))\s*$/;

/** The text from `from` to `to` as spaces and line breaks. */
const hidden = (text: string, from: number, to: number): string =>
  text.slice(from, to).replaceAll(/[^\n]/g, " ");

function endOfQuoted(text: string, from: number): number {
  const quote = text[from];
  let at = from + 1;
  while (at < text.length && text[at] !== quote) {
    at += text[at] === "\\" ? 2 : 1;
  }
  return at + 1;
}

function endOfRegexp(text: string, from: number): number {
  let inClass = false;
  for (let at = from + 1; at < text.length && text[at] !== "\n"; at += 1) {
    const char = text[at];
    if (char === "\\") {
      at += 1;
    } else if (char === "[") {
      inClass = true;
    } else if (char === "]") {
      inClass = false;
    } else if (char === "/" && !inClass) {
      return at + 1;
    }
  }
  return from + 1;
}

const endOf = (text: string, what: string, from: number): number => {
  const found = text.indexOf(what, from);
  return found === -1 ? text.length : found;
};

class Scanner {
  readonly #text: string;
  readonly #keep: Keep;
  #at = 0;
  #out = "";

  constructor(text: string, keep: Keep) {
    this.#text = text;
    this.#keep = keep;
  }

  /** Code up to the end of the text, or to the `}` that closes a template's `${`. */
  scan(insideTemplate: boolean): string {
    let depth = 0;
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at];
      if (insideTemplate && char === "}" && depth === 0) {
        return this.#out;
      }
      depth += char === "{" ? 1 : char === "}" ? -1 : 0;
      this.#step(char ?? "");
    }
    return this.#out;
  }

  #step(char: string): void {
    const text = this.#text;
    const two = text.slice(this.#at, this.#at + 2);
    if (two === "//") {
      this.#hideTo(endOf(text, "\n", this.#at));
    } else if (two === "/*") {
      this.#hideTo(endOf(text, "*/", this.#at + 2) + 2);
    } else if (char === '"' || char === "'") {
      this.#stringTo(endOfQuoted(text, this.#at));
    } else if (char === "`") {
      this.#template();
    } else if (char === "/" && regexpMayFollow.test(this.#out.slice(-40))) {
      this.#stringTo(endOfRegexp(text, this.#at));
    } else {
      this.#out += char;
      this.#at += 1;
    }
  }

  #template(): void {
    this.#out += "`";
    this.#at += 1;
    while (this.#at < this.#text.length && this.#text[this.#at] !== "`") {
      if (this.#text.startsWith("${", this.#at)) {
        this.#out += "${";
        this.#at += 2;
        this.scan(true);
        this.#out += "}";
        this.#at += 1;
      } else {
        this.#stringTo(this.#at + (this.#text[this.#at] === "\\" ? 2 : 1));
      }
    }
    this.#out += "`";
    this.#at += 1;
  }

  #hideTo(end: number): void {
    this.#out += hidden(this.#text, this.#at, end);
    this.#at = Math.min(end, this.#text.length);
  }

  #stringTo(end: number): void {
    if (this.#keep === "strings") {
      this.#out += this.#text.slice(this.#at, end);
      this.#at = end;
    } else {
      this.#hideTo(end);
    }
  }
}

export const withoutComments = (text: string): string => new Scanner(text, "strings").scan(false);

export const codeOnly = (text: string): string => new Scanner(text, "code").scan(false);

/** 1-based line of a place in a text. */
export const lineAt = (text: string, index: number): number =>
  text.slice(0, index).split("\n").length;
