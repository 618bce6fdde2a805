/**
 * Ports: what the pure code may ask of the world. Real implementations live in `edge/ports` and
 * `origin/ports`; simulated ones in `test/`.
 */

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall clock, ms since the Unix epoch. */
  now(): number;
  /** Runs `fire` once after `ms`. Never keeps a process alive by itself. */
  after(ms: number, fire: () => void): Timer;
}

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** `n` bytes fit for ids and nonces. */
  bytes(n: number): Uint8Array;
}
