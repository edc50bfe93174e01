#!/bin/sh
# Installs what is needed, builds the release and makes a first forecast.
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh
cmake --preset release -DBUILD_TESTING=OFF > /dev/null
cmake --build --preset release --target tilecast
build/release/tilecast forecast gpt2_large --gpu H100 --mode training --batch 4 --seq 1024
