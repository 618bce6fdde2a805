import { execFile } from "node:child_process";

export interface FioJob {
  readonly file: string;
  readonly fileBytes: number;
  readonly batchBytes: number;
  readonly depth: number;
  readonly ms: number;
  /** One write and one fdatasync each, through the page cache, instead of one write with DSYNC past it. */
  readonly perOperation?: boolean;
}

export interface FioResult {
  readonly perSecond: number;
  /** From submission to completion, µs. */
  readonly p50Us: number;
}

interface FioReport {
  readonly jobs: readonly {
    readonly write: {
      readonly iops: number;
      readonly lat_ns: { readonly percentile?: Readonly<Record<string, number>> };
    };
  }[];
}

/** Overwrites a zero-written file in place through fio's io_uring engine (Debian package `fio`). */
export function fio(job: FioJob): Promise<FioResult> {
  const common = [
    "--name=x",
    "--rw=write",
    "--ioengine=io_uring",
    "--overwrite=1",
    "--time_based",
    "--lat_percentiles=1",
    "--output-format=json",
    `--filename=${job.file}`,
    `--size=${job.fileBytes}`,
    `--bs=${job.batchBytes}`,
    `--iodepth=${job.depth}`,
    `--runtime=${job.ms}ms`,
  ];
  const how =
    job.perOperation === true
      ? ["--direct=0", "--fdatasync=1"]
      : ["--direct=1", "--sync=dsync", "--fixedbufs=1", "--registerfiles=1"];
  return new Promise((resolve, reject) => {
    execFile("fio", [...common, ...how], { maxBuffer: 1 << 24 }, (error, stdout, stderr) => {
      if (error !== null) {
        reject(new Error(`fio failed: ${stderr}`, { cause: error }));
        return;
      }
      // Notes to humans may stand before the report.
      const report = JSON.parse(stdout.slice(stdout.indexOf("{"))) as FioReport;
      const write = report.jobs[0]?.write;
      const p50 = write?.lat_ns.percentile?.["50.000000"] ?? Number.NaN;
      resolve({ perSecond: write?.iops ?? Number.NaN, p50Us: p50 / 1000 });
    });
  });
}
