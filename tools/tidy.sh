#!/bin/sh
# Runs clang-tidy (.clang-tidy) on the sources of src that changed since a commit, 60 at most, or on all of them.
#   tools/tidy.sh BUILD [COMMIT|all]     BUILD: a build folder with compile_commands.json; default: 10 commits ago
set -eu
cd "$(dirname "$0")/.."
build=$1
since=${2:-$(git rev-list --max-count=11 HEAD | tail -n 1)}
if [ "$since" = all ]; then
  sources=$(git ls-files 'src/*.cc')
else
  sources=$(git diff --name-only --diff-filter=d "$since" -- 'src/*.cc')
fi
sources=$(echo "$sources" | grep -v '_test\.cc$' || true)
[ "$since" = all ] || sources=$(echo "$sources" | head -n 60)
[ -n "$sources" ] || { echo "clang-tidy: no source changed"; exit 0; }
echo "$sources" | xargs -P "$(nproc)" -n 4 clang-tidy-19 --quiet --warnings-as-errors='*' -p "$build"
echo "clang-tidy: $(echo "$sources" | wc -l) sources are clean"
