#!/bin/sh
# Builds fuzz targets with clang, AddressSanitizer and UBSan, and runs each for the given time, as many at a time as there are cores.
# An input has 60 s by the clock, as the machine may be shared.
# What libFuzzer finds worth keeping stays in build/fuzz/corpus, so the next run goes on from there.
#   tools/fuzz.sh [seconds each, default 60] [target ...]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
if ! command -v clang++-19 > /dev/null; then
  echo "fuzzing: skipped, clang-19 is missing (Debian: clang-19, libclang-rt-19-dev)"
  exit 0
fi
targets=${*:-$(basename -s .cc -a tests/fuzz/fuzz_*.cc | sed 's/^fuzz_//')}
# shellcheck disable=SC2086  # lists of words
{
  cmake --preset fuzz -DBUILD_TESTING=OFF ${TILECAST_CMAKE:-} > /dev/null
  cmake --build --preset fuzz --target $(printf 'fuzz_%s ' $targets)
}

fuzz_one() {
  corpus=build/fuzz/corpus/$1
  mkdir -p "$corpus"
  seeds=tests/fuzz/$1
  case $1 in
    config) seeds="$seeds data/models" ;;
    device) seeds="$seeds data/devices" ;;
    accelerator) seeds="$seeds data/accelerators" ;;
  esac
  log=build/fuzz/$1.log
  # shellcheck disable=SC2086
  if "build/fuzz/tests/fuzz/fuzz_$1" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/crash-$1-" "$corpus" $seeds > "$log" 2>&1; then
    echo "fuzzing $1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, $(find "$corpus" -type f | wc -l) kept"
  else
    tail -n 40 "$log"
    echo "fuzzing $1: found a defect, see above; its input is build/fuzz/crash-$1-*" >&2
    echo "$1" >> build/fuzz/failed
  fi
}

rm -f build/fuzz/failed
cores=$(nproc)
running=0
for target in $targets; do
  fuzz_one "$target" &
  running=$((running + 1))
  if [ "$running" -ge "$cores" ]; then
    wait
    running=0
  fi
done
wait
[ ! -e build/fuzz/failed ] || { echo "fuzzing: defects in $(tr '\n' ' ' < build/fuzz/failed)" >&2; exit 1; }
echo "fuzzing: clean"
