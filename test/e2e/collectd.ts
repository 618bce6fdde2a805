import { spawn, type ChildProcess } from "node:child_process";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** One metric at one time, as both of collectd's writers know it. */
export interface Metric {
  readonly name: string;
  /** Seconds, with the milliseconds collectd prints. */
  readonly time: string;
  readonly values: readonly number[];
}

/** Debian's collectd, unmodified, configured to post this machine's own metrics and to keep a CSV copy beside it. */
export class Collectd {
  private readonly dir: string;
  private readonly child: ChildProcess;
  private readonly ended: Promise<void>;

  private constructor(dir: string, child: ChildProcess) {
    this.dir = dir;
    this.child = child;
    this.ended = new Promise((resolve) => child.once("exit", () => resolve()));
  }

  /** `url` is what write_http posts to. */
  static async start(dir: string, url: string): Promise<Collectd> {
    await mkdir(dir, { recursive: true });
    await writeFile(join(dir, "collectd.conf"), configuration(dir, url));
    const child = spawn("/usr/sbin/collectd", ["-f", "-C", join(dir, "collectd.conf")], {
      stdio: "ignore",
    });
    return new Collectd(dir, child);
  }

  /** Ends it in order: collectd then posts what it still has buffered. */
  async stop(): Promise<void> {
    this.child.kill("SIGTERM");
    await this.ended;
  }

  /** What it says it collected: the CSV copy, one file per metric and day, in the order of the lines. */
  async collected(): Promise<Metric[]> {
    const root = join(this.dir, "csv", "device-1");
    const metrics: Metric[] = [];
    for (const plugin of await readdir(root)) {
      for (const file of await readdir(join(root, plugin))) {
        const name = `${plugin}/${file.replace(/-\d{4}-\d\d-\d\d$/, "")}`;
        const lines = (await readFile(join(root, plugin, file), "utf8"))
          .trim()
          .split("\n")
          .slice(1);
        for (const line of lines) {
          const [time = "", ...values] = line.split(",");
          metrics.push({ name, time, values: values.map(Number) });
        }
      }
    }
    return metrics;
  }

  log(): Promise<string> {
    return readFile(join(this.dir, "log"), "utf8");
  }
}

/** The metric inside one JSON value of write_http. */
export function metricOf(record: Record<string, unknown>): Metric {
  const part = (a: string, b: string): string =>
    record[b] === "" ? String(record[a]) : `${String(record[a])}-${String(record[b])}`;
  return {
    name: `${part("plugin", "plugin_instance")}/${part("type", "type_instance")}`,
    time: Number(record["time"]).toFixed(3),
    values: record["values"] as number[],
  };
}

const configuration = (dir: string, url: string): string => `
Hostname "device-1"
FQDNLookup false
BaseDir "${dir}"
PIDFile "${dir}/pid"
PluginDir "/usr/lib/collectd"
TypesDB "/usr/share/collectd/types.db"
Interval 0.5
WriteThreads 1
LoadPlugin logfile
<Plugin logfile>
  LogLevel info
  File "${dir}/log"
</Plugin>
LoadPlugin load
LoadPlugin memory
LoadPlugin cpu
LoadPlugin csv
<Plugin csv>
  DataDir "${dir}/csv"
  StoreRates false
</Plugin>
LoadPlugin write_http
<Plugin write_http>
  <Node "forebay">
    URL "${url}"
    Format "JSON"
    StoreRates false
    BufferSize 4096
    Timeout 5000
  </Node>
</Plugin>
`;
