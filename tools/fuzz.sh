#!/bin/sh
# Builds the fuzz targets with clang, AddressSanitizer and UBSan, and runs each for the given time.
#   tools/fuzz.sh [seconds each, default 60]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
cmake --preset fuzz -DBUILD_TESTING=OFF
cmake --build --preset fuzz --target fuzz_calibration fuzz_config fuzz_device fuzz_graph fuzz_weights
for target in calibration config device graph weights; do
  corpus=build/fuzz/corpus/$target
  mkdir -p "$corpus"
  case $target in
    calibration) cp tests/fuzz/calibration/* "$corpus" ;;
    config) cp data/models/*.json tests/fuzz/config/*.json "$corpus" ;;
    device) cp data/devices/*.json "$corpus" ;;
    graph) cp tests/fuzz/graph/* "$corpus" ;;
    weights) cp tests/fuzz/weights/* "$corpus" ;;
  esac
  echo "fuzzing $target for $seconds s"
  log=build/fuzz/$target.log
  if "build/fuzz/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/crash-$target-" "$corpus" > "$log" 2>&1; then
    grep number_of_executed_units "$log"
  else
    tail -n 40 "$log"
    echo "fuzzing $target: found a crash, see above" >&2
    exit 1
  fi
done
echo "fuzzing: clean"
