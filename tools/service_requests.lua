-- Requests of wrk for tools/measure_service.sh: a warm bundled model on one GPU, of 2 models, 8 GPUs, 32 batches and 8 lengths: 4,096 different
-- ones, so that a stored answer is not what is measured. Arguments: the query of the target, and requests per second of a connection (0: no pause).
local gpus = {"H100", "A100", "L4", "T4", "V100", "A10", "L40S", "H200"}
local models = {"gpt2", "bert"}
local query, pause_ms = "", 0
local counter = 0

function setup(thread)
  counter = counter + 1
  thread:set("seed", counter)
end

function init(args)
  math.randomseed(seed)
  query = args[1] or ""
  local rate = tonumber(args[2] or "0")
  if rate > 0 then pause_ms = 1000 / rate end
  wrk.headers["Content-Type"] = "application/json"
end

-- Milliseconds before the next request of a connection.
function delay()
  if pause_ms == 0 then return 0 end
  return -math.log(1 - math.random()) * pause_ms
end

function request()
  local body = string.format('{"model": "%s", "gpu": "%s", "batch": %d, "seq": %d}', models[math.random(#models)], gpus[math.random(#gpus)], math.random(32),
    64 * math.random(8))
  return wrk.format("POST", "/v1/forecast" .. query, nil, body)
end
