import { readFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
import { append } from "./append.ts";
import { printConfig } from "./configPrint.ts";
import { examples } from "./examples.ts";
import { addFlags, settingsOf, wantsJson } from "./flags.ts";
import { addJournal } from "./journal.ts";
import { list } from "./list.ts";
import { addDead, addOutbox, addQuarantine } from "./outboxCommands.ts";
import { read } from "./read.ts";
import { tail } from "./tail.ts";
import type { Terminal } from "./terminal.ts";
import { withRemote } from "./withRemote.ts";

/** The whole command line, its actions bound to `terminal`. */
export function program(terminal: Terminal): Command {
  const root = new Command("forebay")
    .description(
      "Ordered streams over plain HTTP: buffered at the edge, durable at your own origin.",
    )
    .version(version())
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      outputError: (text, write) => write(usageError(text)),
    })
    .addHelpText(
      "after",
      examples("npm start", "forebay append --create hello '{\"n\":1}'", "forebay tail -f hello"),
    );
  addStart(root, terminal);
  addAppend(root, terminal);
  addRead(root, terminal);
  addTail(root, terminal);
  addList(root, terminal);
  addOutbox(root, terminal);
  addDead(root, terminal);
  addQuarantine(root, terminal);
  addJournal(root, terminal);
  addConfig(root, terminal);
  return root;
}

function addStart(root: Command, terminal: Terminal): void {
  const command = root
    .command("start")
    .description("run the origin and, beside it, the edge, until Ctrl-C")
    .addHelpText(
      "after",
      "\nSizes may be written 64MiB, times 30s. Flags beat variables, variables beat forebay.toml." +
        examples(
          "npm start",
          "npm start -- --port 5000 --edge-port 5001 --data /var/lib/forebay",
          "FOREBAY_KEY=secret forebay start --no-edge --host 0.0.0.0",
        ),
    );
  addFlags(command, "start").action(async () => {
    const { start } = await import("./start.ts");
    await start(settingsOf(command, terminal), wantsJson(command), terminal);
  });
}

function addAppend(root: Command, terminal: Terminal): void {
  const command = root
    .command("append")
    .description(
      "append records, one per argument or one per line of stdin; prints the next offset",
    )
    .argument("<stream>", "path of the stream")
    .argument("[data...]", "records; none, or -, reads stdin")
    .option("--create", "create the stream if it is missing")
    .option(
      "--content-type <type>",
      "of a new stream: application/json by default; else it must be the stream's",
    )
    .addHelpText(
      "after",
      examples(
        "forebay append --create orders '{\"id\":1}' '{\"id\":2}'",
        "forebay append --create --content-type text/plain notes 'a line'",
        "journalctl -f -o json | forebay append --create logs -",
      ),
    );
  addFlags(command, "client").action(
    (stream: string, data: string[], options: { create?: boolean; contentType?: string }) =>
      withRemote(command, terminal, (remote) =>
        append(
          remote,
          {
            stream,
            data,
            create: options.create === true,
            contentType: options.contentType ?? null,
            json: wantsJson(command),
          },
          terminal,
        ),
      ),
  );
}

function addRead(root: Command, terminal: Terminal): void {
  const command = root
    .command("read")
    .description("print a stream from an offset to its present end")
    .argument("<stream>", "path of the stream")
    .option("--offset <offset>", "where to begin; -1 is the start", "-1")
    .addHelpText(
      "after",
      examples("forebay read orders", "forebay read orders --json | tail -1 | jq -r .next"),
    );
  addFlags(command, "client").action((stream: string, options: { offset: string }) =>
    withRemote(command, terminal, (remote) =>
      read(remote, { stream, offset: options.offset, json: wantsJson(command) }, terminal),
    ),
  );
}

function addTail(root: Command, terminal: Terminal): void {
  const command = root
    .command("tail")
    .description("print a stream's last records and, with -f, those that come")
    .argument("<stream>", "path of the stream")
    .option("-f, --follow", "go on until the stream is closed, through lost connections too")
    .option(
      "-n, --lines <count>",
      "records to begin with (the stream is read through for them)",
      wholeCount,
      10,
    )
    .option("--offset <offset>", "begin there instead; now is the end")
    .addHelpText(
      "after",
      examples(
        "forebay tail -n 3 orders",
        "forebay tail -f orders",
        "forebay tail -f --offset now orders",
      ),
    );
  addFlags(command, "client").action(
    (stream: string, options: { follow?: boolean; lines: number; offset?: string }) =>
      withRemote(command, terminal, (remote) =>
        tail(
          remote,
          {
            stream,
            lines: options.lines,
            offset: options.offset ?? null,
            follow: options.follow === true,
            json: wantsJson(command),
          },
          terminal,
        ),
      ),
  );
}

function addList(root: Command, terminal: Terminal): void {
  const command = root
    .command("ls")
    .description("list the origin's streams: tail, content type, path")
    .argument("[prefix]", "only paths that begin so", "")
    .addHelpText("after", examples("forebay ls", "forebay ls app/ --json | jq -r .path"));
  addFlags(command, "client").action((prefix: string) =>
    withRemote(command, terminal, (remote) =>
      list(remote, { prefix, json: wantsJson(command) }, terminal),
    ),
  );
}

function addConfig(root: Command, terminal: Terminal): void {
  const config = root.command("config").description("look at the configuration");
  const command = config
    .command("print")
    .description("print every setting, its value and where it came from")
    .addHelpText(
      "after",
      examples("forebay config print", "forebay config print --json --port 5000"),
    );
  addFlags(command, "all").action(() =>
    printConfig(settingsOf(command, terminal), wantsJson(command), terminal),
  );
}

function wholeCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) {
    throw new InvalidArgumentError("give a whole number.");
  }
  return Number(text);
}

/** commander's "error: …" in our form: `error usage: …`. */
function usageError(text: string): string {
  return text.replace(/^error: /, "error usage: ");
}

function version(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  return manifest.version;
}
