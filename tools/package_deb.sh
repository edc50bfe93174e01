#!/bin/sh
# Makes the packages of Debian: tools/package_deb.sh FOLDER [BUILD]; BUILD: a folder of a release build, else one is made.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
out=$(cd "$1" && pwd)
build=${2:-build/package}
command -v dpkg-shlibdeps > /dev/null || apt-get install -y -qq --no-install-recommends dpkg-dev > /dev/null
if [ ! -f "$build/CMakeCache.txt" ]; then
  sh tools/setup.sh
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 \
    -DBUILD_TESTING=OFF -DTILECAST_PYTHON=OFF -DTILECAST_MEASURE=OFF > /dev/null
fi
cmake --build "$build" --target tilecast
if [ -e .git ]; then
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH
fi
(cd "$build" && cpack -B "$out" > /dev/null)
rm -rf "$out/_CPack_Packages"
ls "$out"/*.deb
