/** What both sides must read and write alike of the Durable Streams protocol over HTTP. */
export { parseAck, type AckLevel } from "./ack.ts";
export { controlError } from "./control.ts";
export { isJson, isTextual, mediaType } from "./contentType.ts";
export {
  corsHeaders,
  isAllowedOrigin,
  loopbackOrigins,
  parseAllowedOrigins,
  preflightHeaders,
  type AllowedOrigins,
} from "./cors.ts";
export { responseCursor } from "./cursor.ts";
export { formatEtag, ifNoneMatch, type Representation } from "./etag.ts";
export {
  acksPrefix,
  controlPrefix,
  framesContentType,
  framesPath,
  header,
  ingestPrefix,
  isStreamTarget,
  streamPrefix,
} from "./headers.ts";
export { parseFork, type ForkFields, type ForkPoint } from "./fork.ts";
export { parseDecimal } from "./integer.ts";
export { formatOffset, parseOffset, type Offset } from "./offset.ts";
export { isReservedPath, normalizeStreamPath } from "./path.ts";
export { parseProducer } from "./producer.ts";
export { securityHeaders } from "./security.ts";
export { compareSeq, parseStreamSeq } from "./seq.ts";
export { parseExpiresAt, parseLifetime, parseTtl, type Instant, type Lifetime } from "./ttl.ts";
