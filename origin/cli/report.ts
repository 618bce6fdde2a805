import { CommanderError } from "commander";
import { exitCodes, ForebayError, type ErrorCode } from "../../shared/errors/mod.ts";
import { OutputClosed, remark, type Terminal } from "./terminal.ts";

/** What helps, said below the error. */
const waysOut: Partial<Record<ErrorCode, string>> = {
  config_invalid: "`forebay start --help` lists every setting, its variable and its default",
  key_required: "set FOREBAY_KEY, or bind 127.0.0.1",
  port_taken:
    "stop what listens there (`ss -ltnp` names it), or choose another with --port or --edge-port; 0 takes a free one",
  data_unwritable: "let this user write there, or choose another directory with --data",
  data_locked: "stop the other process, or choose another directory with --data",
  journal_corrupt:
    "nothing was changed on disk: restore the directory from a copy, or start with another --data",
  disk_full: "free some space, or lower journalBudgetBytes",
  edge_failed: "run with --log-level debug to see all that it says, or without the edge: --no-edge",
  origin_unreachable: "start one with `npm start`, or say where it is with --url or FOREBAY_URL",
  outcome_unknown: "read the stream's end before you append the same again",
  unauthorized: "set FOREBAY_KEY to the key that the server was started with",
  stream_not_found: "`forebay ls` lists what there is; `forebay append --create` makes a new one",
  stream_conflict: "leave --content-type out to append to the stream as it is",
  content_type_mismatch: "leave --content-type out to append as the stream's own type",
  bad_json: "text that is not JSON goes into a stream of --content-type text/plain",
  bad_offset: "`--offset -1` reads from the start",
};

/**
 * Says what went wrong on stderr: `error <code>: message` and, indented, the way out; with `json` one JSON line.
 * Only errors that are ours, programmer errors, come with a stack.
 *
 * @returns the exit code
 */
export function report(error: unknown, terminal: Terminal, json: boolean): number {
  if (error instanceof OutputClosed) {
    return 0;
  }
  if (error instanceof CommanderError) {
    // It has printed its own message; help and version end here too, with 0.
    return error.exitCode;
  }
  if (!(error instanceof ForebayError)) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    remark(
      terminal,
      json ? JSON.stringify({ code: "internal", message: text }) : `error internal: ${text}`,
    );
    return 1;
  }
  const { code, message } = error;
  const wayOut = waysOut[code];
  if (json) {
    remark(
      terminal,
      JSON.stringify({ code, message, ...(wayOut === undefined ? {} : { wayOut }) }),
    );
  } else {
    remark(terminal, `error ${code}: ${message}${wayOut === undefined ? "" : `\n  ${wayOut}`}`);
  }
  return exitCodes[code] ?? 1;
}
