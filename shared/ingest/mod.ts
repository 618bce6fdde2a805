/** From a request body to records: JSON, lines of JSON, beacons; and the answer to whoever sent them. */
export { parseIngest } from "./ingest.ts";
export { checkJsonValue, splitJson } from "./json.ts";
export {
  ingestAnswerJson,
  ingestStatus,
  type Accepted,
  type IngestAnswer,
  type Parsed,
  type Refusal,
} from "./result.ts";
