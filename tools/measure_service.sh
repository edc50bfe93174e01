#!/bin/sh
# Measures the service with wrk on this machine: answers with chosen fields as fast as they come, the same at half that load, whole answers; then
# tables over HTTP beside the same rows in the process. Build with -O3 (cmake --preset release) on a machine without other work.
#   tools/measure_service.sh build/release/tilecast [seconds of each, default 20]
# MILLION=600 adds requests that all differ, for 600 s: the most memory is printed at the end.
set -eu
program=$1
seconds=${2:-20}
here=$(dirname "$0")
command -v wrk > /dev/null || { echo "skipped: wrk is missing (Debian: wrk)"; exit 0; }
work=$(mktemp -d)
trap 'kill "$service" 2> /dev/null || true; rm -rf "$work"' EXIT
"$program" serve --port 0 > "$work/address" &
service=$!
until grep -q listens "$work/address"; do sleep 0.1; done
url=$(sed -n '1s|.*\(http://[^/]*\)/.*|\1|p' "$work/address")
load() { wrk --latency "$@" | grep -E 'Latency  |50%|99%|Requests/sec|Non-2xx'; }

load -t 2 -c 16 -d 10 -s "$here/service_requests.lua" "$url" -- '?fields=latency_s' > /dev/null # warms the passes
echo "chosen fields, 16 connections:"
load -t 2 -c 16 -d "$seconds" -s "$here/service_requests.lua" "$url" -- '?fields=latency_s' | tee "$work/full"
rate=$(awk '/Requests\/sec/ { printf "%d", $2 / 2 / 32 }' "$work/full")
echo "half that load, arrivals at random on 32 connections:"
load -t 2 -c 32 -d "$seconds" -s "$here/service_requests.lua" "$url" -- '?fields=latency_s' "$rate"
echo "whole answers with kernels, 16 connections:"
load -t 2 -c 16 -d "$seconds" -s "$here/service_requests.lua" "$url"

python3 - "$work/rows.csv" << 'END'
import random
import sys
random.seed(1)
with open(sys.argv[1], "w") as file:
    file.write("model,gpu,batch,seq\n")
    for _ in range(200_000):
        file.write(f"{random.choice(('gpt2', 'bert', 'gpt2_large'))},{random.choice(('H100', 'A100', 'L4', 'T4', 'V100', 'A10', 'L40S', 'H200'))},"
                   f"{random.randint(1, 256)},{8 * random.randint(1, 64)}\n")
END
rows() { curl -s -o "$work/answer" -w '%{time_total}' -H 'Content-Type: text/csv' --data-binary "@$work/rows.csv" "$url/v1/forecast_many" | awk '{ printf "%.0f rows/s\n", 200000 / $1 }'; }
printf 'a table of 200,000 rows over HTTP: '
rows
in_process="${MANY_ROWS:-$(dirname "$program")/many_rows}"
if [ -x "$in_process" ]; then
  printf 'the same in a process: '
  "$in_process" "$work/rows.csv"
  printf 'again over HTTP: '
  rows
else
  echo "the same in a process: build the target many_rows for it"
fi
if [ "${MILLION:-}" ]; then
  echo "different requests for $MILLION s:"
  load -t 1 -c 8 -d "$MILLION" -s "$here/service_requests.lua" "$url" -- '?fields=latency_s' 0 different
fi
curl -s "$url/metrics" | grep -E '^tilecast_(requests_total|pass_cache_(hits|misses|passes))'
awk '/VmHWM/ { printf "most memory of the service: %d MB\n", $2 / 1000 }' "/proc/$service/status"
