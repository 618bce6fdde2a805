import { invariant } from "../../shared/errors/mod.ts";
import type { StreamId } from "../../shared/ids/mod.ts";
import { Arena } from "./arena.ts";

/**
 * The two arenas. Invariant: while `pending` is set, the previous arena's records are in no run that a catalog names,
 * so it may not be replaced.
 */
export class Arenas {
  active: Arena = new Arena();
  previous: Arena = new Arena();
  #pending = false;

  get bytesHeld(): number {
    return this.active.bytesHeld + this.previous.bytesHeld;
  }

  /** Bytes held of records that no run has. */
  get bytesUnsaved(): number {
    return this.active.bytesHeld + (this.#pending ? this.previous.bytesHeld : 0);
  }

  /** The active arena becomes the previous one, to be put into a run. */
  close(): Arena {
    invariant(!this.#pending, "an arena is replaced when its records are in a run");
    this.previous = this.active;
    this.active = new Arena();
    this.#pending = true;
    return this.previous;
  }

  /** A catalog names the previous arena's run. It is read from until it is replaced. */
  settle(): void {
    this.#pending = false;
  }

  drop(stream: StreamId): void {
    this.active.drop(stream);
    this.previous.drop(stream);
  }
}
