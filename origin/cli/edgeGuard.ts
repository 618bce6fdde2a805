/**
 * Loaded into the edge's process before wrangler (`--import`): when the process that started it is gone, however it
 * went, the channel to it closes, and the edge ends as if it had been asked to. Nothing outlives `forebay start`.
 */
process.on("disconnect", () => {
  process.kill(process.pid, "SIGTERM");
});
process.channel?.unref();
