import { ForebayError } from "../../shared/errors/mod.ts";
import { isHost } from "./host.ts";

/** A request target in origin form, cut in two, nothing decoded. */
export class Target {
  /** As sent: percent-encoding and dot segments stand; the stream path is normalised from it once. */
  readonly path: string;
  /** Without the question mark; "" for none. */
  readonly query: string;
  #parameters: URLSearchParams | null = null;

  constructor(url: string) {
    const question = url.indexOf("?");
    this.path = question === -1 ? url : url.slice(0, question);
    this.query = question === -1 ? "" : url.slice(question + 1);
  }

  /**
   * A query parameter, null when absent.
   *
   * @throws ForebayError `bad_query` when it stands there twice
   */
  one(name: string): string | null {
    if (this.query === "") {
      return null;
    }
    this.#parameters ??= new URLSearchParams(this.query);
    const all = this.#parameters.getAll(name);
    if (all.length > 1) {
      throw new ForebayError("bad_query", `the query names ${name} ${all.length} times`);
    }
    return all[0] ?? null;
  }
}

/** Absolute form (RFC 9112 §3.2.2) as origin form; anything else as it is, an authority that names no host too. */
export function originForm(url: string): string {
  const authority = url.startsWith("/") ? null : /^https?:\/\/([^/?#]*)/i.exec(url);
  if (authority === null || !isHost(authority[1] ?? "")) {
    return url;
  }
  const rest = url.slice(authority[0].length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}
