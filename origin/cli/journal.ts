import type { Command } from "commander";
import { examples } from "./examples.ts";
import { addDataFlags, wantsJson } from "./flags.ts";
import type { Terminal } from "./terminal.ts";

/** `forebay journal …`: looks at the journal (WAL) in a data directory, without its server. */
export function addJournal(root: Command, terminal: Terminal): void {
  const journal = root
    .command("journal")
    .description(
      "look at the journal (WAL) of a data directory; reads only, also while it is in use",
    )
    .addHelpText("after", examples("forebay journal ls", "forebay journal verify --data ./data"));
  const command = journal
    .command("ls")
    .description("list the segments: state, what is used of them, batches, entries, LSNs")
    .addHelpText(
      "after",
      examples("forebay journal ls", "forebay journal ls --json | jq '.segments[].state'"),
    );
  addDataFlags(command).action(async () => {
    const { listSegments } = await import("./journalView.ts");
    await listSegments(command, wantsJson(command), terminal);
  });
  addInspect(journal, terminal);
  addVerify(journal, terminal);
  addQuarantine(journal, terminal);
}

function addInspect(journal: Command, terminal: Terminal): void {
  const command = journal
    .command("inspect")
    .description("list the batches: place, seq, term, LSNs, entries, bytes")
    .argument("[segment]", "only this one: its generation in hexadecimal, or its file name")
    .addHelpText(
      "after",
      examples("forebay journal inspect", "forebay journal inspect 1a --json | jq .seq"),
    );
  addDataFlags(command).action(async (segment?: string) => {
    const { inspectBatches } = await import("./journalView.ts");
    await inspectBatches(command, { segment, json: wantsJson(command) }, terminal);
  });
}

function addVerify(journal: Command, terminal: Terminal): void {
  const command = journal
    .command("verify")
    .description("read everything and give the verdict a start would give; exit code 65 for damage")
    .addHelpText(
      "after",
      examples("forebay journal verify", "forebay journal verify --data /backup/data --json"),
    );
  addDataFlags(command).action(async () => {
    const { verify } = await import("./journalView.ts");
    await verify(command, wantsJson(command), terminal);
  });
}

function addQuarantine(journal: Command, terminal: Terminal): void {
  const quarantine = journal
    .command("quarantine")
    .description("journals that were damaged and set aside (setting journalDamage = quarantine)");
  const list = quarantine
    .command("ls")
    .description("list them: name, what can be read, what is wrong")
    .addHelpText(
      "after",
      examples("forebay journal quarantine ls", "forebay journal quarantine ls --json"),
    );
  addDataFlags(list).action(async () => {
    const { listSetAside } = await import("./journalQuarantine.ts");
    await listSetAside(list, wantsJson(list), terminal);
  });
  const restore = quarantine
    .command("restore")
    .description(
      "put a repaired one back; the journal in its place is set aside in turn. Needs the server stopped",
    )
    .argument("<name>", "as `quarantine ls` shows it")
    .addHelpText("after", examples("forebay journal quarantine restore 0.quarantine-1"));
  addDataFlags(restore).action(async (name: string) => {
    const { restore: putBack } = await import("./journalQuarantine.ts");
    await putBack(restore, { name, json: wantsJson(restore) }, terminal);
  });
}
