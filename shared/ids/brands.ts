declare const brand: unique symbol;
type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** Frame sequence number: per outbox epoch, dense from 1, never reused. */
export type Fsn = Brand<number, "Fsn">;
/** Position in one journal: the number of an entry, dense from 1; 0 is "before everything". */
export type Lsn = Brand<number, "Lsn">;
/** Number of an outbox within a region. */
export type Partition = Brand<number, "Partition">;
/** One life of a stream: a path created again gets a new id (the stream generation). */
export type StreamId = Brand<number, "StreamId">;

export const fsn = (n: number): Fsn => n as Fsn;
export const lsn = (n: number): Lsn => n as Lsn;
export const streamId = (n: number): StreamId => n as StreamId;
