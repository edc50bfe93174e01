#!/bin/sh
# Writes the files that are made of the program's tables and data: JSON schemas, Python's stubs, reference pages.
#
#     tools/generate.sh [BUILD]     BUILD: the build folder, build/release
set -e
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/release}
cmake --build "$build" --target result_files
"$build/result_files" "$root"
cmake --build "$build" --target tilecast
python3 "$root/tools/reference_pages.py" "$build/tilecast" --write
python3 "$root/tools/law_page.py"
python3 "$root/tools/price_page.py"
