-- Requests of wrk for tools/measure_service.sh: a warm bundled model on one GPU, of 4 models, 8 GPUs, 64 batches and 32 lengths: 65,536 different
-- ones, so that a stored answer is not what is measured. Arguments: the query of the target, and requests per second of a connection (0: no pause).
local gpus = {"H100", "A100", "L4", "T4", "V100", "A10", "L40S", "H200"}
local models = {"gpt2", "bert", "gpt2_large", "resnet-50"}
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
  local model = models[math.random(#models)]
  local length = model == "resnet-50" and "" or string.format(', "seq": %d', 16 * math.random(32))
  local body = string.format('{"model": "%s", "gpu": "%s", "batch": %d%s}', model, gpus[math.random(#gpus)], math.random(64), length)
  return wrk.format("POST", "/v1/forecast" .. query, nil, body)
end
