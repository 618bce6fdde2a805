/**
 * The one catalogue of operating errors: code → HTTP status, retryable or not, title. A message is
 * written where the error is raised and names the offending value and the limit.
 */

interface Kind {
  readonly status: number;
  readonly retryable: boolean;
  readonly title: string;
}

/** Status, title, and whether the same request may succeed when it is sent again. */
type Row = readonly [status: number, title: string, retry?: "retry"];

const rows = {
  // The request itself
  bad_request: [400, "The request is not valid HTTP"],
  request_timeout: [408, "The request did not arrive in time", "retry"],
  bad_json: [400, "The body is not valid JSON"],
  bad_utf8: [400, "The body is not valid UTF-8"],
  json_too_deep: [400, "The JSON value is nested too deeply"],
  empty_body: [400, "The body is empty"],
  empty_array: [400, "The JSON array holds no record"],
  bad_header: [400, "A header has an invalid value"],
  bad_query: [400, "A query parameter has an invalid value"],
  bad_offset: [400, "The offset is malformed or past the end of the stream"],
  bad_path: [400, "The stream path is not acceptable"],
  bad_producer: [400, "The producer headers are incomplete or invalid"],
  bad_epoch_start: [400, "A new producer epoch must start at seq 0"],
  ack_unavailable: [400, "This acknowledgement level is not available here"],
  missing_content_type: [400, "Content-Type is required"],
  unauthorized: [401, "A valid key is required"],
  origin_not_allowed: [403, "This web origin is not allowed"],
  reserved_path: [403, "This path is reserved for Forebay itself"],
  method_not_allowed: [405, "The method is not allowed here"],
  body_too_large: [413, "The body is too large"],
  record_too_large: [413, "The record is too large"],
  too_many_records: [413, "The request holds too many records"],
  url_too_long: [414, "The URL is too long"],
  http_version_not_supported: [505, "This version of HTTP is not served"],
  unsupported_media_type: [415, "This content type or encoding cannot be taken here"],
  headers_too_large: [431, "The header fields are too large"],
  not_found: [404, "There is nothing at this path"],

  // The stream and its producers
  stream_not_found: [404, "The stream does not exist"],
  stream_gone: [410, "The stream was deleted"],
  offset_gone: [410, "The offset is before the earliest retained record"],
  stream_conflict: [409, "The stream exists with another configuration"],
  path_held: [409, "The path belongs to a stream that has ended and that forks still read"],
  source_gone: [409, "The stream to fork from has ended"],
  stream_closed: [409, "The stream is closed"],
  content_type_mismatch: [409, "The content type is not the stream's"],
  stream_seq_regression: [409, "Stream-Seq does not rise"],
  offset_mismatch: [409, "The stream's tail is not at the expected offset"],
  producer_gap: [409, "The producer's sequence has a gap"],
  stale_epoch: [403, "The producer epoch is stale"],
  too_many_producers: [429, "The stream remembers too many producers", "retry"],
  stream_recreated: [409, "The record was accepted before the stream's creation"],
  seq_too_old: [409, "The seq is below the producer's window"],

  // Subscriptions
  bad_subscription: [400, "The subscription request is not valid"],
  webhook_rejected: [400, "This webhook URL may not be called from here"],
  bad_token: [401, "The subscription's token is missing or not valid"],
  subscription_not_found: [404, "The subscription does not exist"],
  subscription_exists: [409, "The subscription exists with another configuration"],
  fenced: [409, "The wake is over, or another generation has begun"],
  already_claimed: [409, "Another worker holds the subscription"],
  no_pending_work: [409, "The subscription has nothing pending"],
  bad_ack_offset: [409, "The acknowledged offset is not between the cursor and the tail"],
  too_many_links: [409, "The subscription would follow too many streams"],
  too_many_subscriptions: [429, "There are too many subscriptions", "retry"],

  // Load and faults
  edge_overloaded: [503, "Too many bytes are pending at this edge", "retry"],
  outbox_slow: [429, "The outbox is above its soft mark", "retry"],
  outbox_full: [503, "The outbox is full", "retry"],
  outbox_unavailable: [503, "The outbox did not answer", "retry"],
  origin_unreachable: [503, "The origin cannot be reached; nothing was stored", "retry"],
  outcome_unknown: [503, "It is not known whether the write was stored", "retry"],
  too_many_waiting: [503, "Too many requests are waiting", "retry"],
  shutting_down: [503, "The server is shutting down", "retry"],
  journal_failed: [503, "The journal has failed; reads go on", "retry"],
  store_full: [503, "The store is full", "retry"],
  arenas_full: [503, "The store is still writing what came before", "retry"],
  store_failed: [503, "The store's disk gives errors", "retry"],
  record_damaged: [500, "The stored record is damaged"],
  disk_full: [507, "The disk or the journal's budget is full", "retry"],
  internal: [500, "An internal error"],

  // The frame link
  bad_frame: [400, "The frame is damaged or of an unknown version"],
  frame_gap: [409, "The frame's FSN is not the next one"],
  frame_too_large: [413, "The frame is too large"],
  frame_spans_shards: [400, "The frame touches more than one shard"],
  stale_outbox_epoch: [409, "The outbox epoch is stale"],
  hello_required: [409, "HELLO must come before the first frame of a boot", "retry"],
  origin_history_lost: [409, "The origin lost its history", "retry"],
  frame_given_up: [409, "The frame was given up by its outbox"],

  // Starting up (process exit, never HTTP)
  config_invalid: [500, "The configuration is invalid"],
  port_taken: [500, "The port is taken"],
  data_unwritable: [500, "The data directory cannot be written"],
  storage_unavailable: [500, "The storage backend asked for cannot be had here"],
  data_locked: [500, "Another process holds the data directory"],
  journal_corrupt: [500, "The journal is damaged"],
  store_corrupt: [500, "The store is damaged"],
  format_unsupported: [500, "The data is in a format of a newer version"],
  key_required: [500, "A public address needs a key"],
  edge_failed: [500, "The edge beside the origin did not start, or ended"],
} as const;

export type ErrorCode = keyof typeof rows;

const toKind = ([status, title, retry]: Row): Kind => ({
  status,
  title,
  retryable: retry === "retry",
});

export const catalogue: Readonly<Record<ErrorCode, Kind>> = Object.fromEntries(
  Object.entries(rows).map(([code, row]) => [code, toKind(row)]),
) as Record<ErrorCode, Kind>;

/** Exit codes of the command line for errors that end the process at start (sysexits.h). */
export const exitCodes: Partial<Record<ErrorCode, number>> = {
  config_invalid: 78,
  key_required: 78,
  port_taken: 69,
  data_unwritable: 73,
  storage_unavailable: 78,
  data_locked: 75,
  journal_corrupt: 65,
  store_corrupt: 65,
  store_failed: 74,
  format_unsupported: 65,
  disk_full: 74,
  edge_failed: 70,
};
