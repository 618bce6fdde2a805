import type { Listing, Remote } from "./remote.ts";
import { printLine, type Terminal } from "./terminal.ts";

const pageMax = 1000;

/** `forebay ls`: the streams below a prefix in order of their paths, page by page as they come. */
export async function list(
  remote: Remote,
  options: { readonly prefix: string; readonly json: boolean },
  terminal: Terminal,
): Promise<void> {
  let after: string | null = "";
  while (after !== null) {
    const page = await remote.list(options.prefix, after, pageMax);
    for (const stream of page.streams) {
      await printLine(terminal, options.json ? JSON.stringify(stream) : line(stream));
    }
    after = page.next;
  }
}

function line({ path, contentType, tail, closed, ttlSeconds, expiresAt }: Listing): string {
  const notes = [
    closed ? "closed" : "",
    ttlSeconds === null ? "" : `ttl ${ttlSeconds}s`,
    expiresAt === null ? "" : `until ${expiresAt}`,
  ].filter((note) => note !== "");
  return [tail, contentType, path, ...notes].join("  ");
}
