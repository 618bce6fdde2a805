import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ForebayError } from "../../shared/errors/mod.ts";
import { nativeLayer } from "../native/mod.ts";
import { pause } from "../ports/mod.ts";
import type { DirectoryLock } from "./types.ts";

const retryMs = 50;
const sqliteBusy = 5;

/**
 * Two locks, always taken in this order: an exclusive SQLite transaction on `lock.sqlite`, and with the
 * addon `flock` on `lock.pid`. They do not exclude each other, so it is never one *or* the other: a build
 * with the addon and one without still meet at the first. The kernel releases both when the process dies.
 * The number in `lock.pid` serves only the message.
 */
export async function lockDirectory(dir: string, waitMs: number): Promise<DirectoryLock> {
  for (let waited = 0; ; waited += retryMs) {
    const lock = tryLock(dir);
    if (lock !== undefined) {
      return lock;
    }
    if (waited >= waitMs) {
      throw new ForebayError(
        "data_locked",
        `${dir} is in use by process ${holder(dir)} (waited ${waitMs} ms); stop it or choose another data directory`,
      );
    }
    await pause(retryMs);
  }
}

function tryLock(dir: string): DirectoryLock | undefined {
  const database = beginExclusive(join(dir, "lock.sqlite"));
  if (database === undefined) {
    return undefined;
  }
  let fd: number | undefined;
  try {
    fd = openSync(join(dir, "lock.pid"), constants.O_RDWR | constants.O_CREAT, 0o644);
    if (nativeLayer()?.flock(fd) === false) {
      closeSync(fd);
      database.close();
      return undefined;
    }
    ftruncateSync(fd, 0);
    writeSync(fd, `${process.pid}\n`);
  } catch (error) {
    if (fd !== undefined) {
      closeSync(fd);
    }
    database.close();
    throw error;
  }
  return heldLock(database, fd);
}

function heldLock(database: DatabaseSync, fd: number): DirectoryLock {
  let held = true;
  return {
    descriptor: fd,
    release(): Promise<void> {
      if (held) {
        held = false;
        closeSync(fd);
        database.close();
      }
      return Promise.resolve();
    },
  };
}

/** An empty database does for a lock: nothing is ever written to it. */
function beginExclusive(path: string): DatabaseSync | undefined {
  // SQLite says of a file it cannot open only that it cannot; this says why, with the system's code.
  closeSync(openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600));
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec("BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === sqliteBusy) {
      return undefined;
    }
    throw error;
  }
}

function holder(dir: string): string {
  try {
    return readFileSync(join(dir, "lock.pid"), "utf8").trim() || "unknown";
  } catch {
    return "unknown";
  }
}
