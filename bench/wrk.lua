-- Plays a file of requests (bench/requests.ts) with wrk, each thread every n-th of them, and prints the result as JSON.
-- Arguments: the file, the number of threads, the mean pause in milliseconds before each request of a connection (0: none).
local threads = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

function init(args)
  local file = assert(io.open(args[1], "rb"))
  local text = file:read("*a")
  file:close()
  local of, at, position = tonumber(args[2]), 0, 1
  pause = tonumber(args[3])
  requests, last, sent = {}, 0, 0
  while position <= #text do
    local stop = string.find(text, "\0", position, true) or #text + 1
    if at % of == number then
      last = last + 1
      requests[last] = string.sub(text, position, stop - 1)
    end
    at = at + 1
    position = stop + 1
  end
  math.randomseed(number + 1)
  -- wrk looks for these two when the script is loaded into a thread: without a pause it must not find one.
  if pause == 0 then delay = nil end
end

function request()
  sent = sent + 1
  return requests[(sent - 1) % last + 1]
end

-- Pauses are as long as those between customers: the next one does not wait for the one before.
function delay()
  if pause == 0 then return 0 end
  return math.floor(-math.log(1 - math.random()) * pause + 0.5)
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"perSecond":%.1f,"p50Ms":%.3f,"p99Ms":%.3f,"p999Ms":%.3f,"failed":%d,"answered":%d}\n',
    (summary.requests - errors.status) / summary.duration * 1e6, latency:percentile(50) / 1000,
    latency:percentile(99) / 1000, latency:percentile(99.9) / 1000,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout, summary.requests))
end
