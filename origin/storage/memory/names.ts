import { dirname } from "node:path";
import type { Random } from "../../../shared/ports/mod.ts";
import type { Content } from "./content.ts";

/** A directory, or a file's content. */
export type Entry = "directory" | Content;

/** Moves a file. A file has one name: also after a crash that kept this change and lost an earlier one. */
export function movedFile(names: Map<string, Entry>, file: Content, to: string): void {
  for (const [path, entry] of names) {
    if (entry === file) {
      names.delete(path);
    }
  }
  names.set(to, file);
}

/** Moves a directory with all that lies in it, unless a crash has lost it. */
export function movedDirectory(names: Map<string, Entry>, from: string, to: string): void {
  for (const [path, entry] of [...names]) {
    if (path === from || path.startsWith(`${from}/`)) {
      names.delete(path);
      names.set(to + path.slice(from.length), entry);
    }
  }
}

/** A change of a directory that no sync of it has confirmed yet. Each is atomic, as in a journaling file system. */
export interface NameChange {
  readonly dir: string;
  readonly apply: (names: Map<string, Entry>) => void;
  done: boolean;
}

/** The directory tree: as programs see it, and as it is certain to outlive a crash. */
export class Names {
  readonly visible: Map<string, Entry>;
  readonly #synced: Map<string, Entry>;
  #pending: NameChange[] = [];

  constructor(entries: ReadonlyMap<string, Entry>) {
    this.visible = new Map(entries);
    this.#synced = new Map(entries);
  }

  submit(path: string, apply: NameChange["apply"]): NameChange {
    const change = { dir: dirname(path), apply, done: false };
    this.#pending.push(change);
    return change;
  }

  complete(change: NameChange): void {
    change.apply(this.visible);
    change.done = true;
  }

  /** The call failed: it changes nothing, now or after a crash. */
  withdraw(change: NameChange): void {
    this.#pending = this.#pending.filter((other) => other !== change);
  }

  covered(dir: string): NameChange[] {
    return this.#pending.filter((change) => change.done && change.dir === dir);
  }

  synced(changes: readonly NameChange[]): void {
    const confirmed = new Set(changes);
    for (const change of this.#pending) {
      if (confirmed.has(change)) {
        change.apply(this.#synced);
      }
    }
    this.#pending = this.#pending.filter((change) => !confirmed.has(change));
  }

  /** The tree after a crash: what was synced, and each other change with the chance `survival`. */
  survivor(random: Random, survival: number): Map<string, Entry> {
    const names = new Map(this.#synced);
    for (const change of this.#pending) {
      if (random.next() < survival) {
        change.apply(names);
      }
    }
    const contents = new Map<Content, Content>();
    const survivors = new Map<string, Entry>();
    for (const [path, entry] of names) {
      if (!reachable(names, path)) {
        continue;
      }
      if (entry === "directory") {
        survivors.set(path, entry);
        continue;
      }
      const content = contents.get(entry) ?? entry.survivor(random, survival);
      contents.set(entry, content);
      survivors.set(path, content);
    }
    return survivors;
  }
}

/** Every directory above `path` is there too. */
function reachable(names: ReadonlyMap<string, Entry>, path: string): boolean {
  for (let dir = dirname(path); dir !== "/"; dir = dirname(dir)) {
    if (names.get(dir) !== "directory") {
      return false;
    }
  }
  return true;
}
