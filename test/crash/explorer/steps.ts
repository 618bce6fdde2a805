import { readU64, viewOf } from "../../../origin/journal/layout.ts";
import type { DiskCall, MemoryDisk } from "../../../origin/storage/mod.ts";
import { shardDir } from "../../origin/journal/harness.ts";

/**
 * The barriers of FORMAT.md in their literal order: what two neighbours stand for must be crossed by power cuts. Steps of
 * the files (one thing at a time is done to them) and steps of the commit path go on side by side.
 */
const sequences: readonly (readonly string[])[] = [
  ["manifest create", "manifest fill", "manifest made", "manifest name", "create directory"],
  ["prepare create", "prepare fill", "prepare header", "prepare sync", "prepare name"],
  ["prepare name", "prepare directory"],
  ["recycle rename", "prepare header"],
  ["watermark create", "watermark fill", "watermark made", "watermark name"],
  ["watermark name", "watermark directory", "trim directory", "trim manifest"],
  ["watermark write", "watermark sync", "trim directory", "trim manifest", "trim manifest sync"],
  ["trim manifest sync", "recycle rename"],
  ["prepare directory", "recycle rename"],
  ["trim manifest sync", "unlink"],
  ["unlink", "unlink"],
  ["unlink", "unlink directory"],
  ["recover segment", "recover segment"],
  ["recover segment", "recover manifest", "recover directory"],
  ["recover manifest", "recover watermark", "recover directory"],
  ["batch", "batch"],
  ["batch", "seal", "rotate open", "rotate manifest", "rotate manifest sync", "batch"],
  ["batch", "attest"],
  ["buffered write", "buffered sync"],
];

export const pairsToReach: readonly string[] = sequences.flatMap((steps) =>
  steps.slice(1).map((step, i) => `${steps[i]} → ${step}`),
);

type Procedure = "files" | "commit";

/** Tells which barrier step a finished call was, and counts the power cuts between each two. */
export class Steps {
  readonly #pairs: Map<string, number>;
  readonly #last = new Map<Procedure, string>();
  readonly #images = new Map<Procedure, number>();
  #manifestStep = "";
  #head = 1;
  #opening = true;

  constructor(pairs: Map<string, number>) {
    this.#pairs = pairs;
  }

  /** The journal is open: its manifest's values from here on. */
  opened(disk: MemoryDisk): void {
    this.#opening = false;
    this.#readManifest(disk);
  }

  /** Power was lost here. */
  image(): void {
    for (const procedure of this.#last.keys()) {
      this.#images.set(procedure, (this.#images.get(procedure) ?? 0) + 1);
    }
  }

  /** A call took effect. */
  completed(call: DiskCall, disk: MemoryDisk): void {
    const [procedure, step] = this.#classify(call, disk) ?? [];
    if (procedure === undefined || step === undefined) {
      return;
    }
    const last = this.#last.get(procedure);
    if (last !== undefined) {
      const pair = `${last} → ${step}`;
      this.#pairs.set(pair, (this.#pairs.get(pair) ?? 0) + (this.#images.get(procedure) ?? 0));
    }
    this.#last.set(procedure, step);
    this.#images.set(procedure, 0);
  }

  /** A call failed: what comes next is no step of a literal order. */
  failed(): void {
    this.#last.clear();
    this.#images.clear();
  }

  #classify(call: DiskCall, disk: MemoryDisk): [Procedure, string] | undefined {
    if (call.name === "syncDirectory") {
      return call.path === shardDir ? this.#directory() : undefined;
    }
    const name = call.path.slice(shardDir.length + 1);
    if (name.startsWith("manifest")) {
      return this.#manifest(call, disk);
    }
    if (name.startsWith("watermark")) {
      return this.#watermark(call);
    }
    if (name.endsWith(".segment.new")) {
      return preparing(call);
    }
    return name.endsWith(".segment") ? this.#segment(call, disk) : undefined;
  }

  #directory(): [Procedure, string] | undefined {
    const last = this.#last.get("files") ?? "";
    const after: readonly (readonly [RegExp, string])[] = [
      [/^prepare name$/, "prepare directory"],
      [/^watermark name$/, "watermark directory"],
      [/^watermark (?:directory|sync)$/, "trim directory"],
      [/^unlink$/, "unlink directory"],
      [/^recover /, "recover directory"],
      [/^manifest name$/, "create directory"],
    ];
    const step = after.find(([pattern]) => pattern.test(last))?.[1];
    return step === undefined ? undefined : ["files", step];
  }

  #manifest(call: DiskCall, disk: MemoryDisk): [Procedure, string] | undefined {
    const made = call.path.endsWith(".new");
    if (call.name === "open") {
      return call.detail === "create" ? ["files", "manifest create"] : undefined;
    }
    if (call.name === "rename") {
      return ["files", "manifest name"];
    }
    if (call.name === "write" && call.bytes === 8192) {
      return ["files", "manifest fill"];
    }
    if (call.name === "write") {
      const head = this.#head;
      this.#readManifest(disk);
      this.#manifestStep = this.#head > head ? "trim manifest" : "rotate manifest";
      return [this.#head > head ? "files" : "commit", this.#manifestStep];
    }
    if (call.name !== "sync") {
      return undefined;
    }
    if (this.#manifestStep === "") {
      return ["files", made ? "manifest made" : "recover manifest"];
    }
    const procedure = this.#manifestStep === "trim manifest" ? "files" : "commit";
    return [procedure, `${this.#manifestStep} sync`];
  }

  #watermark(call: DiskCall): [Procedure, string] | undefined {
    if (call.name === "open") {
      return call.detail === "create" ? ["files", "watermark create"] : undefined;
    }
    if (call.name === "rename") {
      return ["files", "watermark name"];
    }
    if (call.name === "write") {
      return ["files", call.bytes === 8192 ? "watermark fill" : "watermark write"];
    }
    if (call.name !== "sync") {
      return undefined;
    }
    const last = this.#last.get("files");
    if (last === "watermark fill") {
      return ["files", "watermark made"];
    }
    return ["files", this.#opening ? "recover watermark" : "watermark sync"];
  }

  #segment(call: DiskCall, disk: MemoryDisk): [Procedure, string] | undefined {
    switch (call.name) {
      case "rename":
        return ["files", "recycle rename"];
      case "unlink":
        return ["files", "unlink"];
      case "sync":
        return this.#opening ? ["files", "recover segment"] : ["commit", "buffered sync"];
      case "open":
        return this.#opening || call.detail === "read" ? undefined : ["commit", "rotate open"];
      case "write":
        return ["commit", batchStep(call, disk)];
      default:
        return undefined;
    }
  }

  #readManifest(disk: MemoryDisk): void {
    const bytes = disk.files().get(`${shardDir}/manifest`);
    if (bytes === undefined) {
      return;
    }
    const view = viewOf(bytes);
    this.#head = Math.max(readU64(view, 24), readU64(view, 4096 + 24));
  }
}

function preparing(call: DiskCall): [Procedure, string] | undefined {
  switch (call.name) {
    case "open":
      return call.detail === "create" ? ["files", "prepare create"] : undefined;
    case "write":
      return ["files", call.bytes === 4096 ? "prepare header" : "prepare fill"];
    case "sync":
      return ["files", "prepare sync"];
    case "rename":
      return ["files", "prepare name"];
    default:
      return undefined;
  }
}

/** What a batch that was just written is, by its flags and its count of entries. */
function batchStep(call: DiskCall, disk: MemoryDisk): string {
  const bytes = disk.files().get(call.path) ?? new Uint8Array(8192);
  const view = viewOf(bytes);
  if (!disk.direct) {
    return "buffered write";
  }
  if ((view.getUint16(call.position + 6, true) & 1) !== 0) {
    return "seal";
  }
  return view.getUint32(call.position + 52, true) === 0 ? "attest" : "batch";
}
