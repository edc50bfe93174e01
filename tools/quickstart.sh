#!/bin/sh
# Installs what is needed, builds the release and makes a first forecast.
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh
cmake --preset release -DBUILD_TESTING=OFF > /dev/null
cmake --build --preset release --target tilecast
build/release/tilecast forecast llama-3.1-8b --gpu H100 --prompt 1024 --output 256 --batch 16
