import { invariant } from "../../shared/errors/mod.ts";
import { limits } from "../../shared/limits.ts";
import type { BatchRow, DeadRow, FrameRow, ProducerRow } from "./rows.ts";

/**
 * The outbox's tables. Every row written is billed, so no table has a second index: keys of text live in tables without
 * row ids, and nothing counts itself up (AUTOINCREMENT writes a second row).
 *
 * ```
 * frames     row | boot | n records | at, ms | bytes of the FRAME message
 * meta       k | v as JSON: `tail`, `drain`, `lives` (rows.ts)
 * producers  stream, id | epoch | seq | row, idx of that seq | at
 * batches    stream, id | row, idx | at
 * dead       row | epoch | fsn | n | at | reason | bytes as they were
 * replays    row that was dead | row it was sent again in; made with the first one
 * ```
 */
const schema = `
  CREATE TABLE meta (k TEXT PRIMARY KEY, v TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE frames (row INTEGER PRIMARY KEY, boot INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, bytes BLOB NOT NULL);
  CREATE TABLE producers (stream TEXT NOT NULL, id TEXT NOT NULL, epoch INTEGER NOT NULL, seq INTEGER NOT NULL,
    row INTEGER NOT NULL, idx INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (stream, id)) WITHOUT ROWID;
  CREATE TABLE batches (stream TEXT NOT NULL, id TEXT NOT NULL, row INTEGER NOT NULL, idx INTEGER NOT NULL,
    at INTEGER NOT NULL, PRIMARY KEY (stream, id)) WITHOUT ROWID;
  CREATE TABLE dead (row INTEGER PRIMARY KEY, epoch TEXT NOT NULL, fsn INTEGER NOT NULL, n INTEGER NOT NULL,
    at INTEGER NOT NULL, reason TEXT NOT NULL, bytes BLOB NOT NULL);
`;

const replaySchema =
  "CREATE TABLE IF NOT EXISTS replays (row INTEGER PRIMARY KEY, again INTEGER NOT NULL)";

type Value = string | number | ArrayBuffer | null;

export class Tables {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** Whether this outbox was ever written to. Reading one that was not must not write. */
  exist(): boolean {
    return this.#all("SELECT 1 FROM sqlite_master WHERE name = 'meta'").length > 0;
  }

  create(): void {
    this.#write(schema);
  }

  /** The value last put under `key`. */
  meta(key: string): unknown {
    const row = this.#all<{ v: string }>("SELECT v FROM meta WHERE k = ?", key)[0];
    return row === undefined ? undefined : JSON.parse(row.v);
  }

  putMeta(key: string, value: unknown): void {
    this.#write(
      "INSERT INTO meta VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
      key,
      JSON.stringify(value),
    );
  }

  insertFrame(frame: FrameRow): void {
    invariant(
      frame.bytes.byteLength <= limits.frameBytesMax,
      "no row is larger than a frame may be",
    );
    this.#write(
      "INSERT INTO frames VALUES (?, ?, ?, ?, ?)",
      frame.row,
      frame.boot,
      frame.n,
      frame.at,
      frame.bytes,
    );
  }

  /** The frames above `row`, oldest first, read one by one as they are asked for. */
  framesAbove(row: number): Iterable<FrameRow> {
    return this.#sql.exec<FrameRow & Record<string, Value>>(
      "SELECT * FROM frames WHERE row > ? ORDER BY row",
      row,
    );
  }

  frame(row: number): FrameRow | undefined {
    return this.#all<FrameRow & Record<string, Value>>(
      "SELECT * FROM frames WHERE row = ?",
      row,
    )[0];
  }

  /** When the oldest frame was accepted. */
  oldestAt(): number | undefined {
    return this.#all<{ at: number }>("SELECT at FROM frames ORDER BY row LIMIT 1")[0]?.at;
  }

  /** The oldest row accepted in a boot newer than `boot`. */
  oldestAfterBoot(boot: number): number | undefined {
    return this.#all<{ row: number }>(
      "SELECT row FROM frames WHERE boot > ? ORDER BY row LIMIT 1",
      boot,
    )[0]?.row;
  }

  /** Takes every frame up to `row` out and says what went. */
  trim(row: number): {
    readonly frames: number;
    readonly records: number;
    readonly bytes: number;
  } {
    const sums = this.#all<{ frames: number; records: number | null; bytes: number | null }>(
      "SELECT COUNT(*) AS frames, SUM(n) AS records, SUM(LENGTH(bytes)) AS bytes FROM frames WHERE row <= ?",
      row,
    )[0];
    this.#write("DELETE FROM frames WHERE row <= ?", row);
    return { frames: sums?.frames ?? 0, records: sums?.records ?? 0, bytes: sums?.bytes ?? 0 };
  }

  /** Puts `dead` into its table and `bytes`, a VOID frame, in its place. */
  giveUp(dead: DeadRow, bytes: ArrayBuffer): void {
    const { row, epoch, fsn, n, at, reason } = dead;
    this.#write(
      "INSERT INTO dead VALUES (?, ?, ?, ?, ?, ?, ?)",
      row,
      epoch,
      fsn,
      n,
      at,
      reason,
      dead.bytes,
    );
    this.#write("UPDATE frames SET n = 0, bytes = ? WHERE row = ?", bytes, row);
  }

  deadReason(row: number): string | undefined {
    return this.#all<{ reason: string }>("SELECT reason FROM dead WHERE row = ?", row)[0]?.reason;
  }

  dead(row: number): DeadRow | undefined {
    return this.#all<DeadRow & Record<string, Value>>("SELECT * FROM dead WHERE row = ?", row)[0];
  }

  /** Frames given up at rows above `row`, oldest first. */
  deadAfter(row: number, limit: number): DeadRow[] {
    return this.#all<DeadRow & Record<string, Value>>(
      "SELECT * FROM dead WHERE row > ? ORDER BY row LIMIT ?",
      row,
      limit,
    );
  }

  /** Takes a frame out of `dead`: it was sent again in another row. */
  replayed(row: number, again: number): void {
    this.#write(replaySchema);
    this.#write("INSERT INTO replays VALUES (?, ?)", row, again);
    this.#write("DELETE FROM dead WHERE row = ?", row);
  }

  /** Where a frame that was given up was sent again. */
  replayOf(row: number): number | undefined {
    const made = this.#all("SELECT 1 FROM sqlite_master WHERE name = 'replays'").length > 0;
    return made
      ? this.#all<{ again: number }>("SELECT again FROM replays WHERE row = ?", row)[0]?.again
      : undefined;
  }

  producer(stream: string, id: string): ProducerRow | undefined {
    return this.#all<ProducerRow & Record<string, Value>>(
      "SELECT * FROM producers WHERE stream = ? AND id = ?",
      stream,
      id,
    )[0];
  }

  putProducer(p: ProducerRow): void {
    this.#write(
      `INSERT INTO producers VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (stream, id) DO UPDATE
       SET epoch = excluded.epoch, seq = excluded.seq, row = excluded.row, idx = excluded.idx, at = excluded.at`,
      p.stream,
      p.id,
      p.epoch,
      p.seq,
      p.row,
      p.idx,
      p.at,
    );
  }

  producersOf(stream: string): number {
    return (
      this.#all<{ n: number }>("SELECT COUNT(*) AS n FROM producers WHERE stream = ?", stream)[0]
        ?.n ?? 0
    );
  }

  /** Forgets producers silent since `at`: of one stream, or of all. */
  forgetProducers(at: number, stream: string | null): void {
    if (stream === null) {
      this.#write("DELETE FROM producers WHERE at < ?", at);
    } else {
      this.#write("DELETE FROM producers WHERE stream = ? AND at < ?", stream, at);
    }
  }

  batch(stream: string, id: string): BatchRow | undefined {
    return this.#all<BatchRow & Record<string, Value>>(
      "SELECT * FROM batches WHERE stream = ? AND id = ?",
      stream,
      id,
    )[0];
  }

  putBatch({ stream, id, row, idx, at }: BatchRow): void {
    this.#write("INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?, ?)", stream, id, row, idx, at);
  }

  /** Forgets batches older than `at`, and of the rest the oldest beyond `keep`. */
  forgetBatches(at: number, keep: number): void {
    this.#write("DELETE FROM batches WHERE at < ?", at);
    const newest = "SELECT at FROM batches ORDER BY at DESC LIMIT 1 OFFSET ?";
    const cut = this.#all<{ at: number }>(newest, keep - 1)[0];
    if (cut !== undefined) {
      this.#write("DELETE FROM batches WHERE at < ?", cut.at);
    }
  }

  #all<Row extends Record<string, Value>>(query: string, ...values: Value[]): Row[] {
    return this.#sql.exec<Row>(query, ...values).toArray();
  }

  #write(query: string, ...values: Value[]): void {
    this.#sql.exec(query, ...values);
  }
}
