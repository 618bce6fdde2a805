/** The frame link's messages and their bytes (FORMAT.md). */
export { decodeMessages } from "./decode.ts";
export { encodeMessage } from "./encode.ts";
export { frameBytes, requestBytes } from "./size.ts";
export {
  frameFlag,
  messageType,
  requestFlag,
  type Ack,
  type Credit,
  type Frame,
  type FrameRequest,
  type Hello,
  type LinkMessage,
  type Nack,
  type ProducerTag,
  type RequestResult,
  type Welcome,
} from "./types.ts";
