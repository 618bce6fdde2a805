import { surveyJournal, type JournalSurvey } from "../../../origin/journal/mod.ts";
import type { MemoryDisk } from "../../../origin/storage/mod.ts";
import { ForebayError } from "../../../shared/errors/mod.ts";
import type { Random } from "../../../shared/ports/mod.ts";
import {
  diskOf,
  open,
  shardDir,
  snapshot,
  type OpenChoices,
} from "../../origin/journal/harness.ts";
import { noteRow, type Explored } from "./explored.ts";
import { foundBy, type History } from "./history.ts";

export interface DamageParts {
  readonly history: History;
  readonly random: Random;
  readonly sizes: OpenChoices;
  readonly explored: Explored;
}

interface BatchSeen {
  readonly path: string;
  readonly position: number;
  readonly bytes: number;
  readonly seq: number;
  readonly durableSeq: number;
}

/** An image that recovery accepts, ready to be damaged. */
interface Subject {
  readonly survey: JournalSurvey;
  readonly batches: readonly BatchSeen[];
  readonly files: Map<string, Uint8Array>;
}

const manifest = `${shardDir}/manifest`;
const watermark = `${shardDir}/watermark`;

function flip(subject: Subject, path: string, at: number): void {
  const bytes = subject.files.get(path);
  if (bytes === undefined) {
    throw new Error(`${path} is not there`);
  }
  bytes[at] = (bytes[at] ?? 0) ^ 0x20;
}

const inUse = ({ survey }: Subject): string[] =>
  survey.segments
    .filter(({ state, generation }) => state !== "trimmed" && generation <= survey.active)
    .map(({ name }) => `${shardDir}/${name}`);

/**
 * Damages an image in one way of the recovery table, or lets a call of its start fail. A start must refuse it with every byte as
 * it was (or, for the watermark, go on without a loss).
 */
export async function damaged(image: MemoryDisk, parts: DamageParts): Promise<void> {
  const { explored } = parts;
  const batches: BatchSeen[] = [];
  const survey = await surveyJournal(image, shardDir, (name, header, position) => {
    const { seq, durableSeq, length } = header;
    batches.push({ path: `${shardDir}/${name}`, position, bytes: 68 + length, seq, durableSeq });
  }).catch(() => undefined);
  if (survey === undefined) {
    return;
  }
  // What was done least so far, if there is anything here to do it to.
  const done = (row: string): number => explored.rows.get(row) ?? 0;
  for (const row of Object.keys(ways).toSorted((a, b) => done(a) - done(b))) {
    const subject = { survey, batches, files: snapshot(image) };
    if (await ways[row]?.(subject, parts)) {
      noteRow(explored, row);
      return;
    }
  }
}

/** Damages the files and expects a refusal. */
const refusing =
  (damage: (subject: Subject, random: Random) => boolean) =>
  async (subject: Subject, parts: DamageParts): Promise<boolean> => {
    if (!damage(subject, parts.random)) {
      return false;
    }
    await refusedUnchanged(await diskOf(subject.files), subject.files, parts);
    return true;
  };

/** By row of the recovery table; each says whether it found something to try it on. */
const ways: Readonly<Record<string, (subject: Subject, parts: DamageParts) => Promise<boolean>>> = {
  "refused: no manifest": refusing(
    ({ survey, files }) => survey.segments.length > 0 && files.delete(manifest),
  ),
  "refused: manifest damaged": refusing(({ survey, files }) => {
    files.get(manifest)?.fill(1, 0, 8192);
    return survey.id !== null;
  }),
  "refused: no segments": refusing(({ survey, files }) => {
    for (const path of [...files.keys()].filter((each) => each.endsWith(".segment"))) {
      files.delete(path);
    }
    return survey.active > 0;
  }),
  "refused: segment missing": refusing((subject, random) => {
    const paths = inUse(subject);
    const path = paths[Math.floor(random.next() * paths.length)];
    return path !== undefined && subject.files.delete(path);
  }),
  "refused: sealed segment damaged": refusing(damageSealed),
  "refused: acknowledged batch damaged": refusing(damageAttested),
  "went on: watermark damaged": withoutWatermark,
  "stopped: operational error": operational,
};

export const damageRows: readonly string[] = Object.keys(ways);

function damageSealed(subject: Subject, random: Random): boolean {
  const { survey, batches } = subject;
  const sealed = survey.segments.filter(
    ({ state, generation }) => state === "sealed" && generation < survey.active,
  );
  const segment = sealed[Math.floor(random.next() * sealed.length)];
  const path = `${shardDir}/${segment?.name}`;
  const own = batches.filter((batch) => batch.path === path);
  const batch = own[Math.floor(random.next() * own.length)];
  if (batch === undefined) {
    return false;
  }
  flip(subject, path, batch.position + Math.floor(random.next() * batch.bytes));
  return true;
}

/** A batch of the active segment that a later one says was durable. */
function damageAttested(subject: Subject): boolean {
  const active = inUse(subject).at(-1);
  const own = subject.batches.filter(({ path }) => path === active);
  const attested = own.find((batch) => own.some(({ durableSeq }) => durableSeq >= batch.seq));
  if (attested === undefined) {
    return false;
  }
  flip(subject, attested.path, attested.position + 24);
  return true;
}

/** What was trimmed may come back then; nothing else changes. */
async function withoutWatermark(subject: Subject, parts: DamageParts): Promise<boolean> {
  const bytes = subject.files.get(watermark);
  if (bytes === undefined) {
    return false;
  }
  bytes[0] = 0;
  bytes[4096] = 0;
  const found = foundBy(await open(await diskOf(subject.files), parts.sizes));
  const whole = parts.history.copy();
  whole.trimmed = 0;
  whole.check({ ...found, trimmed: found.firstLsn === 0 ? found.durable : found.firstLsn - 1 });
  return true;
}

async function refusedUnchanged(
  disk: MemoryDisk,
  files: ReadonlyMap<string, Uint8Array>,
  { sizes }: DamageParts,
): Promise<void> {
  const error = await open(disk, sizes).catch((reason: unknown) => reason);
  const refused = error instanceof ForebayError && error.code !== "config_invalid";
  const now = disk.files();
  const same = [...files].every(
    ([path, bytes]) => Buffer.compare(now.get(path) ?? new Uint8Array(0), bytes) === 0,
  );
  if (!refused || !same || now.size !== files.size) {
    throw new Error(`expected a refusal with every byte kept, found ${String(error)}`);
  }
}

/** One call of the start fails before it may change anything: it stops, and the next start finds all. */
async function operational(subject: Subject, parts: DamageParts): Promise<boolean> {
  const { random, history, sizes } = parts;
  if (subject.survey.segments.length < 2) {
    return false;
  }
  const disk = await diskOf(subject.files);
  const kinds = new Set(["open", "read", "stat", "size", "list"]);
  let left = 1 + Math.floor(random.next() * 8);
  disk.observer = (call) => {
    const reads = kinds.has(call.name) && call.detail !== "create" && call.detail !== "commit";
    return reads && call.path.startsWith(shardDir) && --left === 0 ? "EIO" : undefined;
  };
  await refusedUnchanged(disk, subject.files, parts);
  disk.observer = undefined;
  history.check(foundBy(await open(disk, sizes)));
  return left <= 0;
}
