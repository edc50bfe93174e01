#!/bin/sh
# Makes the source distribution of the Python package from the committed sources: tools/sdist.sh FOLDER
# It holds the headers of fmt, nlohmann-json, Eigen, CLI11 and the parts of Boost that the service uses (Debian's packages, found
# in /usr/include) with their licences, so that it builds where only Python, g++, cmake and ninja are. Needs Python's package
# build ($TILECAST_PYTHON, else python3).
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
out=$(cd "$1" && pwd)
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
git archive --prefix=tilecast/ HEAD | tar -x -C "$top"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
cd "$top/tilecast"
mkdir -p third_party/fmt third_party/nlohmann third_party/eigen third_party/cli11 third_party/boost
cp -RL /usr/include/fmt third_party/fmt/
cp -RL /usr/include/nlohmann third_party/nlohmann/
cp -RL /usr/include/eigen3/Eigen third_party/eigen/
cp -RL /usr/include/CLI third_party/cli11/
# What the compiler reads of Boost, and all of the parts that tell compilers, their libraries and processors apart.
{
  grep -l '#include <boost/' src/server/*.cc | while read -r file; do
    ${CXX:-g++} -std=c++20 -M -Isrc -Iinclude "$file"
  done | tr -s ' \\' '\n\n' | grep '^/usr/include/boost/'
  find /usr/include/boost/config /usr/include/boost/predef /usr/include/boost/asio/detail /usr/include/boost/config.hpp /usr/include/boost/version.hpp -type f
} | LC_ALL=C sort -u | xargs -r cp -L --parents -t third_party/boost
mv third_party/boost/usr/include/boost third_party/boost/boost
rm -r third_party/boost/usr
for library in fmt:libfmt-dev nlohmann:nlohmann-json3-dev eigen:libeigen3-dev cli11:libcli11-dev; do
  cp "/usr/share/doc/${library#*:}/copyright" "third_party/${library%%:*}/LICENSE"
done
# Of Boost's copyrights, two megabytes, the licence of the parts that are here.
awk '/^ Boost Software License - Version 1.0/ {found = 1} found {if ($0 == "") exit; sub(/^ \.?/, ""); print}' \
  /usr/share/doc/libboost1*-dev/copyright > third_party/boost/LICENSE
grep -q "WITHOUT WARRANTY" third_party/boost/LICENSE
"${TILECAST_PYTHON:-python3}" -m build --sdist --outdir "$out"
