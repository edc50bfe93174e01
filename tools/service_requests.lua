-- Requests of wrk for tools/measure_service.sh: a warm bundled model on one GPU, of 2 models, 8 GPUs, 32 batches and 8 lengths: 4,096 different
-- ones, so that a stored answer is not what is measured. Arguments: the query of the target, requests per second of a connection (0: no pause), and
-- "different": no request of a thread is like another one until 1,048,576 of them are made.
local gpus = {"H100", "A100", "L4", "T4", "V100", "A10", "L40S", "H200"}
local models = {"gpt2", "bert"}
local query, pause_ms = "", 0
local counter, made, different = 0, 0, false

function setup(thread)
  counter = counter + 1
  thread:set("seed", counter)
end

function init(args)
  math.randomseed(seed)
  query = args[1] or ""
  local rate = tonumber(args[2] or "0")
  if rate > 0 then pause_ms = 1000 / rate end
  different = args[3] == "different"
  wrk.headers["Content-Type"] = "application/json"
end

-- Milliseconds before the next request of a connection.
function delay()
  if pause_ms == 0 then return 0 end
  return -math.log(1 - math.random()) * pause_ms
end

-- The digits of how many were made, each of another option: batches of 1 to 512, lengths of 8 to 1,024 in steps of 8.
local function next_request()
  local n = made
  made = made + 1
  local function digit(base)
    local value = n % base
    n = math.floor(n / base)
    return value + 1
  end
  return models[digit(#models)], gpus[digit(#gpus)], digit(512), 8 * digit(128)
end

function request()
  if different then
    local model, gpu, batch, seq = next_request()
    return wrk.format("POST", "/v1/forecast" .. query, nil, string.format('{"model": "%s", "gpu": "%s", "batch": %d, "seq": %d}', model, gpu, batch, seq))
  end
  local body = string.format('{"model": "%s", "gpu": "%s", "batch": %d, "seq": %d}', models[math.random(#models)], gpus[math.random(#gpus)], math.random(32),
    64 * math.random(8))
  return wrk.format("POST", "/v1/forecast" .. query, nil, body)
end
