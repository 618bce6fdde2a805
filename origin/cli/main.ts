#!/usr/bin/env node
import { run } from "./run.ts";

const { stdin, stdout, stderr, env } = process;
const code = await run(process.argv.slice(2), { stdin, stdout, stderr, env, cwd: process.cwd() });
process.exit(code);
