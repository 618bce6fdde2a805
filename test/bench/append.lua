-- 256-byte appends. The answer must be a success of the protocol: 200 or 204.
--   outside   each request has a field that the recogniser leaves to node:http
--   token     of 16 bytes instead
--   mixed     every third request is a read at the tail
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/octet-stream"
wrk.body = string.rep("forebay.", 32)

function init(args)
  if args[1] == "outside" then
    wrk.headers["TE"] = "trailers"
  elseif args[1] == "token" then
    wrk.body = string.rep("token.", 2) .. "word"
  elseif args[1] == "mixed" then
    local append = wrk.format()
    local read = wrk.format("GET", wrk.path .. "?offset=now", { Host = wrk.headers["Host"] }, "")
    local count = 0
    request = function()
      count = count + 1
      return count % 3 == 2 and read or append
    end
  end
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '{"requests":%d,"perSecond":%.1f,"p50Us":%d,"p99Us":%d,"errors":%d}\n',
    summary.requests, summary.requests / (summary.duration / 1e6),
    latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout))
end
