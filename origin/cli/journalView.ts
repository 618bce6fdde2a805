import type { Command } from "commander";
import { ForebayError } from "../../shared/errors/mod.ts";
import {
  surveyJournal,
  verifyJournal,
  type BatchHeader,
  type JournalSurvey,
  type SegmentSurvey,
  type Verified,
} from "../journal/mod.ts";
import { realDisk } from "../storage/mod.ts";
import { dataDirectory } from "./dataDirectory.ts";
import { printLine, type Terminal } from "./terminal.ts";

/** `forebay journal ls`. */
export async function listSegments(
  command: Command,
  json: boolean,
  terminal: Terminal,
): Promise<void> {
  const { journal } = await dataDirectory(command, terminal);
  const survey = await surveyJournal(realDisk, journal);
  if (json) {
    await printLine(terminal, JSON.stringify(survey));
    return;
  }
  for (const line of headOf(survey)) {
    await printLine(terminal, line);
  }
  for (const segment of survey.segments) {
    await printLine(terminal, segmentLine(segment));
  }
}

function headOf(survey: JournalSurvey): string[] {
  const { dir, id, head, active, trimmed, manifestDamage, watermarkDamage } = survey;
  const notes = [manifestDamage, watermarkDamage === null ? null : `watermark: ${watermarkDamage}`];
  const bytes = survey.segments.reduce((sum, segment) => sum + segment.bytes, 0);
  return [
    `${dir}  id ${id ?? "unknown"}  head ${head.toString(16)}  active ${active.toString(16)}  trimmed to LSN ${trimmed}  ${bytes} bytes`,
    ...notes.filter((note) => note !== null),
  ];
}

function segmentLine(segment: SegmentSurvey): string {
  const { name, state, usedBytes, bytes, batches, entries, firstLsn, lastLsn, why } = segment;
  const lsns = entries === 0 ? "no entries" : `LSN ${firstLsn}–${lastLsn}`;
  const note = state === "damaged" && why !== null ? `  ${why}` : "";
  return `${name}  ${state.padEnd(7)}  ${usedBytes} of ${bytes} bytes  ${batches} batches  ${entries} entries  ${lsns}${note}`;
}

/** `forebay journal inspect`. */
export async function inspectBatches(
  command: Command,
  options: { readonly segment: string | undefined; readonly json: boolean },
  terminal: Terminal,
): Promise<void> {
  const { journal } = await dataDirectory(command, terminal);
  const wanted = options.segment === undefined ? undefined : fileName(options.segment);
  const lines: string[] = [];
  const survey = await surveyJournal(realDisk, journal, (segment, header, position) => {
    if (wanted === undefined || wanted === segment) {
      lines.push(batchLine({ segment, header, position }, options.json));
    }
  });
  if (wanted !== undefined && !survey.segments.some(({ name }) => name === wanted)) {
    const names = survey.segments.map(({ name }) => name).join(", ");
    throw new ForebayError("config_invalid", `${wanted} is not in ${journal}; there are: ${names}`);
  }
  for (const line of lines) {
    await printLine(terminal, line);
  }
}

/** A generation as it may be written, `1a` or the whole name. */
function fileName(segment: string): string {
  const digits = segment.replace(/\.segment$/, "").toLowerCase();
  return `${digits.padStart(16, "0")}.segment`;
}

function batchLine(
  batch: { segment: string; header: BatchHeader; position: number },
  json: boolean,
): string {
  const { segment, header, position } = batch;
  const { seq, term, firstLsn, entries, length, durableSeq, flags } = header;
  const lastLsn = firstLsn + entries - 1;
  const seal = (flags & 1) !== 0;
  if (json) {
    const range = {
      firstLsn: entries === 0 ? null : firstLsn,
      lastLsn: entries === 0 ? null : lastLsn,
    };
    const shown = {
      segment,
      position,
      seq,
      term,
      ...range,
      entries,
      bytes: length,
      durableSeq,
      seal,
    };
    return JSON.stringify(shown);
  }
  const what = seal ? "SEAL" : entries === 0 ? "no entries" : `LSN ${firstLsn}–${lastLsn}`;
  return `${segment} @${position}  seq ${seq}  term ${term}  durable ${durableSeq}  ${what}  ${entries} entries  ${length} bytes`;
}

/** `forebay journal verify`. */
export async function verify(command: Command, json: boolean, terminal: Terminal): Promise<void> {
  const { journal } = await dataDirectory(command, terminal);
  const verified = await verifyCalmly(journal);
  if (json) {
    await printLine(terminal, JSON.stringify({ dir: journal, ...verified }));
    return;
  }
  const { entries, lastLsn, trimmed, findings } = verified;
  const found = Object.entries(findings)
    .filter(([, times]) => times > 0)
    .map(([row, times]) => `${row} ${times}`);
  await printLine(
    terminal,
    `${journal} is whole: ${entries} entries above LSN ${trimmed}, the last is ${lastLsn} (${found.join(", ")})`,
  );
}

/**
 * A server may write, rotate and trim while we read, and what we read early need not fit what we read late. Damage stays where it
 * is: it counts when two looks in a row say the same of it.
 */
async function verifyCalmly(journal: string): Promise<Verified> {
  let before = "";
  for (;;) {
    try {
      return await verifyJournal(realDisk, journal);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message === before) {
        throw error;
      }
      before = message;
    }
  }
}
