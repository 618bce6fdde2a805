import { connect } from "node:net";

export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  /** Everything the server sent until it closed or the time was up. */
  readonly text: string;
}

/** Sends bytes as they are and returns the first answer; for requests no HTTP client would send. */
export async function rawRequest(
  port: number,
  request: string | Buffer,
  waitMs = 2000,
): Promise<RawAnswer> {
  const text = await exchangeBytes(port, request, waitMs);
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const [statusLine = "", ...fields] = head.split("\r\n");
  const headers = new Map<string, string>();
  for (const field of fields) {
    const colon = field.indexOf(":");
    headers.set(field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim());
  }
  return { status: Number(statusLine.split(" ")[1]), headers, body: rest.join("\r\n\r\n"), text };
}

/** Ends when the server closes, or when a whole first answer is there, or at `waitMs`. */
function exchangeBytes(port: number, request: string | Buffer, waitMs: number): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(request));
    const done = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(text);
    };
    const timer = setTimeout(done, waitMs);
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (isWhole(text)) {
        done();
      }
    });
    socket.on("error", done);
    socket.on("close", done);
  });
}

function isWhole(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) {
    return false;
  }
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end));
  return length !== null
    ? text.length >= end + 4 + Number(length[1])
    : /^HTTP\/1\.1 (?:204|304)/.test(text);
}
