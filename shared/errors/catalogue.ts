/**
 * The one catalogue of operating errors: code → HTTP status, retryable or not, title. A message is
 * written where the error is raised and names the offending value and the limit.
 */

interface Kind {
  readonly status: number;
  readonly retryable: boolean;
  readonly title: string;
}

const kind = (status: number, title: string, retryable = false): Kind => ({
  status,
  retryable,
  title,
});

export const catalogue = {
  // The request itself
  bad_json: kind(400, "The body is not valid JSON"),
  bad_utf8: kind(400, "The body is not valid UTF-8"),
  json_too_deep: kind(400, "The JSON value is nested too deeply"),
  empty_body: kind(400, "The body is empty"),
  empty_array: kind(400, "The JSON array holds no record"),
  bad_header: kind(400, "A header has an invalid value"),
  bad_query: kind(400, "A query parameter has an invalid value"),
  bad_offset: kind(400, "The offset is malformed or past the end of the stream"),
  bad_path: kind(400, "The stream path is not acceptable"),
  bad_producer: kind(400, "The producer headers are incomplete or invalid"),
  bad_epoch_start: kind(400, "A new producer epoch must start at seq 0"),
  ack_unavailable: kind(400, "This acknowledgement level is not available here"),
  missing_content_type: kind(400, "Content-Type is required"),
  unauthorized: kind(401, "A valid key is required"),
  origin_not_allowed: kind(403, "This web origin is not allowed"),
  reserved_path: kind(403, "This path is reserved for Forebay itself"),
  method_not_allowed: kind(405, "The method is not allowed here"),
  body_too_large: kind(413, "The body is too large"),
  record_too_large: kind(413, "The record is too large"),
  too_many_records: kind(413, "The request holds too many records"),
  url_too_long: kind(414, "The URL is too long"),
  unsupported_media_type: kind(415, "This content type or encoding cannot be taken here"),
  headers_too_large: kind(431, "The header fields are too large"),
  not_found: kind(404, "There is nothing at this path"),

  // The stream and its producers
  stream_not_found: kind(404, "The stream does not exist"),
  stream_gone: kind(410, "The stream was deleted"),
  offset_gone: kind(410, "The offset is before the earliest retained record"),
  stream_conflict: kind(409, "The stream exists with another configuration"),
  stream_closed: kind(409, "The stream is closed"),
  content_type_mismatch: kind(409, "The content type is not the stream's"),
  stream_seq_regression: kind(409, "Stream-Seq does not rise"),
  offset_mismatch: kind(409, "The stream's tail is not at the expected offset"),
  producer_gap: kind(409, "The producer's sequence has a gap"),
  stale_epoch: kind(403, "The producer epoch is stale"),
  too_many_producers: kind(429, "The stream remembers too many producers", true),
  stream_recreated: kind(409, "The record was accepted before the stream's creation"),
  seq_too_old: kind(409, "The seq is below the producer's window"),

  // Load and faults
  edge_overloaded: kind(503, "Too many bytes are pending at this edge", true),
  outbox_slow: kind(429, "The outbox is above its soft mark", true),
  outbox_full: kind(503, "The outbox is full", true),
  outbox_unavailable: kind(503, "The outbox did not answer", true),
  origin_unreachable: kind(503, "The origin cannot be reached; nothing was stored", true),
  outcome_unknown: kind(503, "It is not known whether the write was stored", true),
  too_many_waiting: kind(503, "Too many requests are waiting", true),
  shutting_down: kind(503, "The server is shutting down", true),
  journal_failed: kind(503, "The journal has failed; reads go on", true),
  store_full: kind(503, "The store is full", true),
  disk_full: kind(507, "The disk or the journal's budget is full", true),
  internal: kind(500, "An internal error"),

  // The frame link
  bad_frame: kind(400, "The frame is damaged or of an unknown version"),
  frame_gap: kind(409, "The frame's FSN is not the next one"),
  frame_too_large: kind(413, "The frame is too large"),
  frame_spans_shards: kind(400, "The frame touches more than one shard"),
  stale_outbox_epoch: kind(409, "The outbox epoch is stale"),
  hello_required: kind(409, "HELLO must come before the first frame of a boot", true),
  origin_history_lost: kind(409, "The origin lost its history", true),
  frame_given_up: kind(409, "The frame was given up by its outbox"),

  // Starting up (process exit, never HTTP)
  config_invalid: kind(500, "The configuration is invalid"),
  port_taken: kind(500, "The port is taken"),
  data_unwritable: kind(500, "The data directory cannot be written"),
  data_locked: kind(500, "Another process holds the data directory"),
  journal_corrupt: kind(500, "The journal is damaged"),
  key_required: kind(500, "A public address needs a key"),
} as const satisfies Record<string, Kind>;

export type ErrorCode = keyof typeof catalogue;

/** Exit codes of the command line for errors that end the process at start (sysexits.h). */
export const exitCodes: Partial<Record<ErrorCode, number>> = {
  config_invalid: 78,
  key_required: 78,
  port_taken: 69,
  data_unwritable: 73,
  data_locked: 75,
  journal_corrupt: 65,
  disk_full: 74,
};
