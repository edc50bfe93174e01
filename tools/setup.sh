#!/bin/sh
# Installs what building and testing need, from Debian's packages. Does nothing where all is there.
set -eu
packages="cmake ninja-build g++ git python3 python3-jsonschema libfmt-dev nlohmann-json3-dev libeigen3-dev libcli11-dev libboost-dev liblzma-dev zlib1g-dev libsqlite3-dev libxgboost0 coinor-libcbc3 libgtest-dev libbenchmark-dev"
missing=
for package in $packages; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "install ok installed" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "installing:$missing"
sudo=
if [ "$(id -u)" != 0 ]; then
  sudo=sudo
  if ! command -v sudo > /dev/null; then
    echo "tools/setup.sh: packages are missing, you are not root, and there is no sudo; run as root: apt-get install --no-install-recommends$missing" >&2
    exit 1
  fi
fi
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
$sudo apt-get install -y -qq --no-install-recommends $missing
