import { InvalidArgumentError, type Command } from "commander";
import { examples } from "./examples.ts";
import { addFlags, wantsJson } from "./flags.ts";
import {
  describeOutbox,
  drainOutbox,
  listDead,
  listOutboxes,
  replayDead,
  showDead,
} from "./outboxes.ts";
import { listQuarantine, replayQuarantine, showQuarantine } from "./quarantine.ts";
import type { Terminal } from "./terminal.ts";
import { withRemote } from "./withRemote.ts";

const atEdge = "The outboxes are an edge's: give its address with --url or FOREBAY_URL.";
const partitionHelp = "number of the outbox, as outbox ls shows it";

/** `forebay outbox …`: the edge's durable buffers. */
export function addOutbox(root: Command, terminal: Terminal): void {
  const outbox = root
    .command("outbox")
    .description("look at the outboxes of an edge, or send what they keep")
    .addHelpText(
      "after",
      `\n${atEdge}${examples("forebay outbox ls --url http://127.0.0.1:8787")}`,
    );
  const ls = outbox
    .command("ls")
    .description("list those that keep something or ever did: frames, bytes, age, health");
  addFlags(ls, "client").action(() =>
    withRemote(ls, terminal, (remote) => listOutboxes(remote, wantsJson(ls), terminal)),
  );
  const describe = outbox
    .command("describe")
    .description("everything one says of itself")
    .argument("<partition>", partitionHelp, wholeCount);
  addFlags(describe, "client").action((partition: number) =>
    withRemote(describe, terminal, (remote) =>
      describeOutbox(remote, { partition, json: wantsJson(describe) }, terminal),
    ),
  );
  const drain = outbox
    .command("drain")
    .description("send what one keeps now, without its backoff, and wait until it is empty")
    .argument("<partition>", partitionHelp, wholeCount)
    .option("--wait <seconds>", "give up after this", wholeCount, 60);
  addFlags(drain, "client").action((partition: number, options: { wait: number }) =>
    withRemote(drain, terminal, (remote) =>
      drainOutbox(remote, { partition, seconds: options.wait, json: wantsJson(drain) }, terminal),
    ),
  );
}

/** `forebay dead …`: frames that an outbox gave up. */
export function addDead(root: Command, terminal: Terminal): void {
  const dead = root
    .command("dead")
    .description("look at the frames that outboxes gave up, or send them again")
    .addHelpText("after", `\n${atEdge}${examples("forebay dead ls", "forebay dead replay 3 17")}`);
  const ls = dead.command("ls").description("list them: outbox, row, records, reason");
  addFlags(ls, "client").action(() =>
    withRemote(ls, terminal, (remote) => listDead(remote, wantsJson(ls), terminal)),
  );
  const show = dead
    .command("show")
    .description("print one with its records")
    .argument("<partition>", partitionHelp, wholeCount)
    .argument("<row>", "row, as dead ls shows it", wholeCount);
  addFlags(show, "client").action((partition: number, row: number) =>
    withRemote(show, terminal, (remote) => showDead(remote, { partition, row }, terminal)),
  );
  const replay = dead
    .command("replay")
    .description("send one again, behind all others of its outbox")
    .argument("<partition>", partitionHelp, wholeCount)
    .argument("<row>", "row, as dead ls shows it", wholeCount);
  addFlags(replay, "client").action((partition: number, row: number) =>
    withRemote(replay, terminal, (remote) =>
      replayDead(remote, { partition, row, json: wantsJson(replay) }, terminal),
    ),
  );
}

/** `forebay quarantine …`: records that the origin took out of frames and could not store where they belonged. */
export function addQuarantine(root: Command, terminal: Terminal): void {
  const quarantine = root
    .command("quarantine")
    .description("look at the records the origin set aside, or append them again")
    .addHelpText("after", examples("forebay quarantine ls", "forebay quarantine replay 12"));
  const ls = quarantine
    .command("ls")
    .description("list the requests: number, code, stream, producer, how many records");
  addFlags(ls, "client").action(() =>
    withRemote(ls, terminal, (remote) => listQuarantine(remote, wantsJson(ls), terminal)),
  );
  const show = quarantine
    .command("show")
    .description("print the records of one as they came, each on its line")
    .argument("<number>", "as quarantine ls shows it", wholeCount);
  addFlags(show, "client").action((number: number) =>
    withRemote(show, terminal, (remote) =>
      showQuarantine(remote, { number, json: wantsJson(show) }, terminal),
    ),
  );
  const replay = quarantine
    .command("replay")
    .description("append one to its stream, without its producer; it stays in the quarantine too")
    .argument("<number>", "as quarantine ls shows it", wholeCount)
    .option("--to <stream>", "append it to another stream");
  addFlags(replay, "client").action((number: number, options: { to?: string }) =>
    withRemote(replay, terminal, (remote) =>
      replayQuarantine(
        remote,
        { number, to: options.to ?? null, json: wantsJson(replay) },
        terminal,
      ),
    ),
  );
}

function wholeCount(text: string): number {
  if (!/^\d{1,15}$/.test(text)) {
    throw new InvalidArgumentError("give a whole number.");
  }
  return Number(text);
}
