import { program } from "./program.ts";
import { report } from "./report.ts";
import { quietOnBrokenPipes, type Terminal } from "./terminal.ts";

/**
 * Runs one command line (without the program's name) to its end.
 *
 * @returns the exit code; errors are already said on stderr
 */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  quietOnBrokenPipes(terminal);
  try {
    await program(terminal).parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    return report(error, terminal, args.includes("--json"));
  }
}
