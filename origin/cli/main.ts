#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// Stripped and compiled once, kept for the next start: about half its time. Where it cannot be written, nothing is lost.
enableCompileCache(fileURLToPath(new URL("../../.build/compile-cache", import.meta.url)));
const { run } = await import("./run.ts");

const { stdin, stdout, stderr, env } = process;
const code = await run(process.argv.slice(2), { stdin, stdout, stderr, env, cwd: process.cwd() });
process.exit(code);
