/** All records of a JSON stream, read page by page as any client would; fails on a page that is not whole. */
export async function readAll<T>(base: string, stream: string): Promise<T[]> {
  const records: T[] = [];
  let offset = "-1";
  for (;;) {
    const answer = await fetch(`${base}/v1/stream/${stream}?offset=${offset}`);
    if (answer.status !== 200) {
      throw new Error(`GET ${stream} at ${offset}: ${answer.status} ${await answer.text()}`);
    }
    for (const record of (await answer.json()) as T[]) {
      records.push(record);
    }
    offset = answer.headers.get("stream-next-offset") ?? "";
    if (answer.headers.get("stream-up-to-date") === "true") {
      return records;
    }
  }
}
