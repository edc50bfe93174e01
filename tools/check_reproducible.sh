#!/bin/sh
# Builds the committed sources in two folders of different names and compares the bytes of the program, of the files that are
# installed beside it and of the libraries; with --wheel those of the source distribution and of a wheel of this machine's Python instead
# (tools/wheels.py). Takes two builds: not part of ctest.
#   tools/check_reproducible.sh [further arguments of cmake ...]
#   tools/check_reproducible.sh --wheel [further arguments of tools/wheels.py ...]
set -eu
cd "$(dirname "$0")/.."
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
first=$top/a second=$top/another-folder/with-a-longer-name
wheel=
if [ "${1:-}" = --wheel ]; then
  wheel=yes
  shift
fi
for folder in "$first" "$second"; do
  mkdir -p "$folder"
  if [ "$wheel" ]; then
    git clone -q . "$folder"
    # A cache of the compiler would hand the first build's files to the second.
    (cd "$folder" && CCACHE_DISABLE=1 python3 tools/wheels.py "$folder/out" --no-test "$@" > /dev/null)
    (cd "$folder/out" && sha256sum ./*) > "$folder.sums"
    continue
  fi
  git archive HEAD | tar -x -C "$folder"
  cmake -S "$folder" -B "$folder/build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 \
    -DTILECAST_PYTHON=OFF -DTILECAST_MEASURE=OFF -DBUILD_TESTING=OFF "$@" > /dev/null
  cmake --build "$folder/build/release" --target tilecast > /dev/null
  (cd "$folder/build/release" && find tilecast shell package ./*.a -type f | sort | xargs sha256sum) > "$folder.sums"
done
diff "$first.sums" "$second.sums" || { echo "two builds of the same sources differ in the files above" >&2; exit 1; }
if [ "$wheel" ]; then
  cat "$first.sums"
  echo "equal bytes: $(wc -l < "$first.sums") files"
else
  echo "equal bytes: $(wc -l < "$first.sums") files, program $(cut -c1-16 < "$first.sums" | tail -n 1)..."
fi
