#!/bin/sh
# Branches of the readers that the seeds of the fuzz targets and what tools/fuzz.sh has kept (build/fuzz/corpus) reach: a build with
# clang's source coverage, each input once. Prints a row for each folder or file of readers, and the sum.
#   tools/fuzz_coverage.sh [target ...]
set -eu
cd "$(dirname "$0")/.."
targets=${*:-$(basename -s .cc -a tests/fuzz/fuzz_*.cc | sed 's/^fuzz_//')}
build=build/coverage
# shellcheck disable=SC2086  # lists of words
{
  cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g0 -DNDEBUG" -DCMAKE_UNITY_BUILD=ON \
    -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 -DTILECAST_MEASURE=OFF -DTILECAST_PYTHON=OFF -DBUILD_TESTING=ON \
    -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
    -DCMAKE_CXX_FLAGS="-fprofile-instr-generate -fcoverage-mapping" ${TILECAST_CMAKE:-} > /dev/null
  cmake --build $build --target $(printf 'corpus_%s ' $targets)
}
objects=
rm -f $build/*.profraw
for target in $targets; do
  kept=build/fuzz/corpus/$target
  [ -d "$kept" ] || kept=
  # shellcheck disable=SC2086
  LLVM_PROFILE_FILE=$build/$target.profraw "$build/corpus_$target" "tests/fuzz/$target" $kept
  objects="$objects -object $build/corpus_$target"
done
llvm-profdata-19 merge -o $build/all.profdata $build/*.profraw
# shellcheck disable=SC2086
llvm-cov-19 export -summary-only -instr-profile=$build/all.profdata $objects \
  src/importers src/base/csv.cc src/base/json.cc src/base/json_text.cc src/base/number.cc src/base/weights_container.cc \
  src/ops/notation.cc src/ops/attributes.cc src/devices src/software src/request/load.cc src/embedding/tables.cc \
  src/accelerator/registry.cc src/accelerator/fields.cc src/accelerator/mapping_file.cc src/accelerator/machine.cc \
  src/accelerator/machine_checks.cc src/tuning/database.cc src/tuning/rules.cc src/tuning/rule_parser.cc src/tuning/conv_problem.cc \
  src/tuning/gemm_problem.cc src/tuning/driver_log.cc src/tuning/problem_words.cc src/predict/weights_reader.cc \
  src/predict/calibration.cc > $build/coverage.json
python3 - $build/coverage.json << 'END'
import collections, json, os, sys
rows, root = collections.defaultdict(lambda: [0, 0, 0, 0]), os.getcwd() + "/src/"
for file in json.load(open(sys.argv[1]))["data"][0]["files"]:
    name = file["filename"].removeprefix(root)
    parts = name.split("/")
    key = "/".join(parts[:2]) if parts[0] == "importers" and len(parts) > 2 else name if parts[0] != "importers" else "importers"
    for row in (rows[key], rows["all"]):
        for i, (kind, what) in enumerate((("branches", "covered"), ("branches", "count"), ("lines", "covered"), ("lines", "count"))):
            row[i] += file["summary"][kind][what]
print(f"{'readers':34}  branches    lines")
for key, (branches, all_branches, lines, all_lines) in sorted(rows.items(), key=lambda item: (item[0] == "all", item[0])):
    print(f"{key:34}  {100 * branches / max(1, all_branches):6.1f} %  {100 * lines / max(1, all_lines):6.1f} %")
END
