#!/bin/sh
# Installs what is needed, builds the release and runs all tests. $TILECAST_PYTHON may name a Python
# with PyTorch and Transformers, for the tests that need them; they are skipped otherwise.
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh
cmake --preset release -DBUILD_TESTING=ON ${TILECAST_PYTHON:+-DPython3_EXECUTABLE="$TILECAST_PYTHON"} > /dev/null
cmake --build --preset release
ctest --preset release
