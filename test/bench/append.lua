-- 256-byte appends. The answer must be a success of the protocol: 200 or 204.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/octet-stream"
wrk.body = string.rep("forebay.", 32)

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '{"requests":%d,"perSecond":%.1f,"p50Us":%d,"p99Us":%d,"errors":%d}\n',
    summary.requests, summary.requests / (summary.duration / 1e6),
    latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout))
end
