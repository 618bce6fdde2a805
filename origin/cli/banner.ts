export interface Running {
  readonly origin: string;
  /** Null without an edge. */
  readonly edge: string | null;
  readonly data: string;
  /** Whether the curl lines need the key. */
  readonly keyed: boolean;
}

/** What `start` prints once both answer: where they are, and two commands to paste. */
export function banner({ origin, edge, data, keyed }: Running): string {
  const auth = keyed ? '-H "authorization: Bearer $FOREBAY_KEY" ' : "";
  const json = "-H 'content-type: application/json'";
  const write =
    edge === null
      ? `curl -X PUT ${auth}${json} -d '[{"hello":"water"}]' ${origin}/v1/stream/hello`
      : `curl ${auth}${json} -d '[{"hello":"water"}]' '${edge}/v1/ingest/hello?ack=origin'`;
  return [
    "Forebay is up.",
    "",
    `  origin  ${origin}`,
    ...(edge === null ? [] : [`  edge    ${edge}`]),
    `  data    ${data}`,
    "",
    edge === null
      ? "Try it, append and read back:"
      : "Try it, append through the edge and read back from the origin's disk:",
    "",
    `  ${write}`,
    `  curl ${auth}'${origin}/v1/stream/hello?offset=-1'`,
    "",
    edge === null ? "Ctrl-C stops it." : "Ctrl-C stops both.",
  ].join("\n");
}
