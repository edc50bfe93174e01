#!/bin/sh
# Runs clang-tidy (.clang-tidy) on all sources, all of a library at once; or, alone, on those that
# changed since a commit. Fails where it finds something. performance-unnecessary-value-param takes four
# tenths of the time of a whole library: it runs on changed sources only.
#   tools/tidy.sh [COMMIT]
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
  sources=$(git diff --name-only --diff-filter=d "$1" -- 'src/*.cc' | grep -v -e '_test\.cc$' -e '_left_out\.cc$' || true)
  cmake --preset tidy -DCMAKE_UNITY_BUILD=OFF > /dev/null
  checks=
else
  cmake --preset tidy -DCMAKE_UNITY_BUILD=ON > /dev/null
  checks=-performance-unnecessary-value-param
  sources=$(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/tidy/compile_commands.json | grep -v -e '/bench/' -e '/build/tidy/[^/]*$')
fi
cmake --build build/tidy --target stored_laws.cc stored_software.cc tilecast_commit_source > /dev/null  # which sources of a unity build include
[ -n "$sources" ] || { echo "clang-tidy: no source changed"; exit 0; }
echo "$sources" | xargs -P "$(nproc)" -n 1 clang-tidy-19 --quiet --checks="$checks" --warnings-as-errors='*' -p build/tidy
echo "clang-tidy: $(echo "$sources" | wc -l) sources are clean"
