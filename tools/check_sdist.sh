#!/bin/sh
# Proves that the source distribution of the Python package (tools/sdist.sh) installs on a Debian 12 machine that has Python,
# g++, cmake and ninja and no headers of other libraries: a new root made with debootstrap. pip fetches what the build requires.
# Needs root, and Python's package build ($TILECAST_PYTHON, else python3).
#   tools/check_sdist.sh [folder for the root]
set -eu
cd "$(dirname "$0")/.."
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
. tools/debian_root.sh
sh tools/sdist.sh "$folder/sdist"
[ -d "$folder/root" ] || debian_root "$folder/root" ca-certificates,python3,python3-dev,python3-venv,g++,cmake,ninja-build
rm -rf "$folder/root/root/sdist"
cp -r "$folder/sdist" "$folder/root/root/sdist"
mount_root "$folder/root"
in_root "$folder/root" '
  test -z "$(ls -d /usr/include/fmt /usr/include/nlohmann /usr/include/eigen3 /usr/include/CLI /usr/include/boost 2> /dev/null)"
  cd /root && rm -rf venv && python3 -m venv venv
  venv/bin/pip install -q sdist/tilecast-*.tar.gz
  venv/bin/tilecast --version
  cd / && /root/venv/bin/python -c "
import tilecast
forecast = tilecast.forecast(\"gpt2_large\", gpu=\"H100\", mode=\"training\", batch=4, seq=1024)
assert 0.1 < forecast.latency_s < 2, forecast.latency_s
print(f\"sdist: installs, and forecasts {forecast.latency_s:.4f} s\")"'
