#!/bin/sh
# Makes the source distribution of the Python package: tools/sdist.sh FOLDER
# It holds the headers of fmt, nlohmann-json and Eigen (Debian's packages, found in /usr/include) with their licences, so that it
# builds where only Python, g++, cmake and ninja are. Needs Python's package build ($TILECAST_PYTHON, else python3).
set -eu
cd "$(dirname "$0")/.."
out=$1
rm -rf third_party
mkdir -p third_party/fmt third_party/nlohmann third_party/eigen
cp -RL /usr/include/fmt third_party/fmt/
cp -RL /usr/include/nlohmann third_party/nlohmann/
cp -RL /usr/include/eigen3/Eigen third_party/eigen/
cp /usr/share/doc/libfmt-dev/copyright third_party/fmt/LICENSE
cp /usr/share/doc/nlohmann-json3-dev/copyright third_party/nlohmann/LICENSE
cp /usr/share/doc/libeigen3-dev/copyright third_party/eigen/LICENSE
trap 'rm -rf third_party' EXIT
"${TILECAST_PYTHON:-python3}" -m build --sdist --outdir "$out"
