#!/bin/sh
# Builds the fuzz targets with clang, AddressSanitizer and UBSan, and runs each for the given time.
#   tools/fuzz.sh [seconds each, default 60]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
cmake --preset fuzz -DBUILD_TESTING=OFF
targets=$(basename -s .cc -a tests/fuzz/fuzz_*.cc)
# shellcheck disable=SC2086  # a list of words
cmake --build --preset fuzz --target $targets
failed=
for target in ${targets}; do
  target=${target#fuzz_}
  corpus=build/fuzz/corpus/$target
  mkdir -p "$corpus"
  cp tests/fuzz/"$target"/* "$corpus"
  case $target in
    config) cp data/models/*.json "$corpus" ;;
    device) cp data/devices/*.json "$corpus" ;;
  esac
  echo "fuzzing $target for $seconds s"
  log=build/fuzz/$target.log
  if "build/fuzz/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/crash-$target-" "$corpus" > "$log" 2>&1; then
    grep number_of_executed_units "$log"
  else
    tail -n 40 "$log"
    echo "fuzzing $target: found a crash, see above" >&2
    failed="$failed $target"
  fi
done
[ -z "$failed" ] || { echo "fuzzing: crashes in$failed" >&2; exit 1; }
echo "fuzzing: clean"
