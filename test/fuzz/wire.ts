import type { Choice } from "./choice.ts";

/**
 * Bytes of a connection: requests that are nearly HTTP/1.1, as latin1. Most are of the recogniser's subset or one step
 * beside it; what HTTP parsers are known to disagree about comes often.
 */
export function connectionBytes(choice: Choice): string {
  const requests = Array.from({ length: 1 + choice.below(4) }, () => request(choice));
  const bytes = requests.join("") + sentinel;
  return choice.chance(0.25) ? mutated(choice, bytes) : bytes;
}

/** Whether it is seen tells whether all bytes before it were taken as requests. */
const sentinel = "POST /v1/stream/sentinel HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nend";

/** Where the bytes are cut: nowhere, at each, or at a few places. */
export function pieces(choice: Choice, bytes: string): string[] {
  const mode = choice.below(20);
  if (mode < 10) {
    return [bytes];
  }
  if (mode < 12 && bytes.length < 400) {
    return bytes.split("");
  }
  const cuts = Array.from({ length: 1 + choice.below(4) }, () => choice.below(bytes.length));
  const ends = [...cuts.toSorted((a, b) => a - b), bytes.length];
  return ends.map((end, i) => bytes.slice(ends[i - 1] ?? 0, end)).filter((piece) => piece !== "");
}

function request(choice: Choice): string {
  const end = choice.usually("\r\n", ["\n", "\r", "\r\r\n", "\n\r\n"], 0.03);
  const framing = framed(choice, choice.of(bodies));
  const fields = [choice.usually(choice.of(hosts), oddHosts, 0.05), ...framing.fields];
  for (let i = choice.below(4); i > 0; i--) {
    const field = choice.chance(0.88) ? choice.of(plainFields) : oddField(choice);
    fields.splice(choice.below(fields.length + 1), 0, field);
  }
  const lines = [startLine(choice), ...fields.filter((line) => line !== "")];
  return `${lines.join(end)}${end}${end}${framing.body}`;
}

function startLine(choice: Choice): string {
  const before = choice.usually("", ["\r\n", "\n", " ", "\r\n\r\n"], 0.03);
  const method = choice.usually("POST", oddMethods, 0.06);
  const spaces = ["  ", "\t", "", " \r"];
  const [first, second] = [choice.usually(" ", spaces, 0.02), choice.usually(" ", spaces, 0.02)];
  const target = choice.chance(0.92) ? choice.of(ourTargets) : oddTarget(choice);
  const version = choice.usually("HTTP/1.1", oddVersions, 0.04);
  return `${before}${method}${first}${target}${second}${version}`;
}

const oddMethods = [
  ...["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "QUERY", "TRACE"],
  ...["post", "POSTS", "POS", "P", "", "PRI", "P\0ST"],
];
const ourTargets = [
  ...["/v1/stream/", "/v1/stream/a", "/v1/frames", "/v1/frames?x"],
  ...["/v1/stream/a/b?ack=none", "/v1/stream/../a", "/v1/stream/%", "/v1/stream/%zz"],
];
const oddTargets = [
  ...["/", "*", "", "a", "//v1/stream/a", "/v1/stream/a#b", "/v1/stream/\x80", "/v1/stream/\0"],
  ...["http://h/v1/stream/a", "HTTP://h:1/v1/frames", "http://h", "https://h?x", "//"],
  ...["/v1/stream/a b", '/v1/stream/"', "/v1/stream/\t", "/v1/stream/<{|}>^`\\"],
  ...["/v1/framesx", "/v1/ingest/a"],
];
const oddTarget = (choice: Choice): string =>
  choice.chance(0.1)
    ? `/v1/stream/${"x".repeat(choice.of([8000, 8192, 20_000]))}`
    : choice.of(oddTargets);
const oddVersions = [
  ...["HTTP/1.0", "HTTP/1.1 ", "HTTP/2.0", "http/1.1", "HTTP/1.01"],
  ...["HTTP/1", "HTTP/0.9", "", "RTSP/1.0"],
];

const hosts = ["Host: h", "host:h:1", "HOST: \t h "];
const oddHosts = [
  ...["", "Host:", "Host : h", "Host: h\r\nHost: h", " Host: h", "Host: \x80"],
  ...["Host: a b", "Host: x@y:zz", "Host: h:99999"],
];

const plainFields = [
  ...[
    "Content-Type: text/plain",
    "Stream-Seq: 1",
    "stream-closed: true",
    "X:",
    "x:\t1\t ",
    "X: a b",
  ],
  ...["Authorization: Bearer x", "Origin: http://h", 'If-None-Match: "a"', "Producer-Id: p"],
  ...["Keep-Alive: timeout=5", "Connection: keep-alive", "Connection: Keep-Alive"],
  ...["!#$%&'*+-.^_`|~: v", "If-None-Match: a\r\nIf-None-Match: b"],
];
const oddFields = [
  ...["X : 1", " X: 1", "\tX: 1", ": 1", ":", "X", "X\0: 1", "X: \0", "X: \x01", "X: \x7f"],
  ...["X: a\rb", "X: \x80\xff", "\x80: 1", "X: a\nY: b", "X: a\r\n b", "X: a\r\n\tb", "X(: 1"],
  ...["X: a\r\n ", "\rX: 1", "Connection: close", "Connection: keep-alive, close"],
  ...["Connection: Upgrade", "Connection:", "Upgrade: websocket", "Proxy-Connection: close"],
  ...["Upgrade: h2c\r\nConnection: Upgrade", "Expect: 100-continue", "Expect: x", "TE: trailers"],
  ...["Trailer: X", "HTTP2-Settings: AAAA", "Content-Encoding: gzip", "Content-Encoding: identity"],
  ...["Content-Type: a\r\nContent-Type: a", "Stream-Seq: 1\r\nStream-Seq: 2", "Authorization:"],
  ...["Transfer-Encoding: chunked", "Transfer-Encoding: identity", "Transfer-Encoding:"],
  ...["Content-Length: 3", "Content-Length: 0"],
];
function oddField(choice: Choice): string {
  const kind = choice.below(12);
  if (kind === 0) {
    return `X: ${"x".repeat(choice.of([1000, 16_000, 25_000, 40_000]))}`;
  }
  if (kind === 1) {
    return "X: 1\r\n".repeat(choice.of([10, 1000, 3000])).slice(0, -2);
  }
  return choice.of(oddFields);
}

const bodies = [
  ...[
    "",
    "a",
    "abc",
    "0123456789",
    "\r\n",
    "\r\n\r\n",
    "\0\xff",
    "x".repeat(999),
    "x".repeat(3000),
  ],
  "POST /v1/stream/inner HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
  ...["0\r\n\r\n", "1\r\nx\r\n0\r\n\r\n"],
];

/** The fields that say how long the body is, rightly or not, and the body as they say. */
function framed(choice: Choice, body: string): { fields: string[]; body: string } {
  const length = body.length;
  const name = choice.of(["Content-Length", "content-length", "CONTENT-LENGTH"]);
  const kind = choice.below(20);
  if (kind < 14) {
    return { fields: [`${name}: ${length}`], body };
  }
  if (kind < 16) {
    return { fields: [`${name}: ${choice.of(wrongLengths(name, length))}`], body };
  }
  if (kind === 16) {
    return { fields: [], body };
  }
  const coding = choice.usually("chunked", oddCodings, 0.4);
  const colon = choice.usually(":", [" :", "\t:", "\0:"], 0.05);
  const both = choice.chance(0.3) ? [`${name}: ${length}`] : [];
  const fields = [`Transfer-Encoding${colon} ${coding}`, ...both];
  return { fields: choice.chance(0.5) ? fields : fields.toReversed(), body: chunks(choice, body) };
}

const wrongLengths = (name: string, n: number): string[] => [
  ...[`+${n}`, `-${n}`, `0${n}`, `${n} ${n}`, `${n}, ${n}`, `${n},`, `0x${n.toString(16)}`],
  ...[`${n}.0`, "", " ", "1e1", "-0", "99999999999999999999", "18446744073709551616", `${n}\x0b`],
  ...[`\t${n}\t`, `${n + 1}`, `${Math.max(0, n - 1)}`, `${n + 70_000}`],
  ...[`${n}\r\n${name}: ${n}`, `${n}\r\n${name}: ${n + 1}`],
];
const oddCodings = [
  ...["Chunked", "chunked ", "gzip, chunked", "chunked, gzip", "xchunked", "identity", ""],
  ...["chunked\r\nTransfer-Encoding: chunked", "\x0bchunked", '"chunked"', "chunked;q=1"],
  "identity, chunked",
];

function chunks(choice: Choice, body: string): string {
  const hex = body.length.toString(16);
  const oddSizes = [`0${hex}`, `0x${hex}`, "-1", `+${hex}`, " 1", "", "f".repeat(16), `${hex} `];
  const size = choice.usually(hex, [...oddSizes, "10000000000000000"]);
  const extension = choice.usually("", [";x", ";x=y", ';x="\n"', " ;x", ";", ";\0"], 0.2);
  const end = choice.usually("\r\n", ["\n", "\r", "\r\n\r\n", ""], 0.1);
  const dataEnd = choice.usually("\r\n", ["\n", "", "x"], 0.1);
  const trailers = ["X: 1\r\n", "Content-Length: 5\r\n", "X\r\n", " X: 1\r\n"];
  const first = body === "" ? "" : `${size}${extension}${end}${body}${dataEnd}`;
  return `${first}0\r\n${choice.usually("", trailers, 0.2)}\r\n`;
}

/** One to three small changes anywhere. */
function mutated(choice: Choice, bytes: string): string {
  let text = bytes;
  for (let i = choice.below(3); i >= 0; i--) {
    const at = choice.below(text.length);
    const some = choice.below(8);
    const [head, tail] = [text.slice(0, at), text.slice(at)];
    const change = choice.of([
      () => head + byte(choice) + tail.slice(1),
      () => head + byte(choice) + tail,
      () => head + tail.slice(1 + some),
      () => head + tail.slice(0, some) + tail,
      () => head,
      () => head + text.slice(choice.below(text.length)),
    ]);
    text = change();
  }
  return text;
}

const byte = (choice: Choice): string =>
  choice.chance(0.5) ? choice.of(oddBytes) : String.fromCharCode(choice.below(256));
const oddBytes = [
  ...["\r", "\n", "\0", " ", "\t", ":", ",", "+", "-", "0", "9", "\x80", "\xff", "\x7f", "\r\n"],
];
