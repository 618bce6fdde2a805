/** Timeouts and caps of the connections. */
export interface FrontSettings {
  readonly maxConnections: number;
  /** From a connection's first moment, or a request's first byte, to the end of its header fields. */
  readonly headersTimeoutMs: number;
  /** To the end of its body. */
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** How often node:http looks for requests beyond their timeouts. */
  readonly timeoutCheckMs: number;
}
