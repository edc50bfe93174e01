#!/bin/sh
# Installs the packages of tools/package_deb.sh in a fresh Debian 12 root, forecasts with the program, builds a program of a few lines
# against the library (tests/package), and removes both. Needs root.
#   tools/check_deb.sh FOLDER_OF_THE_PACKAGES [folder for the root]
set -eu
cd "$(dirname "$0")/.."
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
. tools/debian_root.sh
[ -d "$folder/root" ] || debian_root "$folder/root" ca-certificates
root=$folder/root
debian_sources "$root"
mount_root "$root"
rm -rf "$root/root/packages" "$root/root/consumer"
mkdir -p "$root/root/packages"
cp "$1"/*.deb "$root/root/packages/"
cp -r tests/package "$root/root/consumer"
in_root "$root" '
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  cd /root/packages
  apt-get install -y -qq --no-install-recommends ./tilecast_*.deb > /dev/null
  cd /
  tilecast --version
  tilecast forecast gpt2_large --gpu H100 | grep latency
  test -f /usr/share/doc/tilecast/copyright && test -f /usr/share/bash-completion/completions/tilecast
  cd /root/packages
  apt-get install -y -qq --no-install-recommends ./libtilecast-dev_*.deb cmake ninja-build g++ > /dev/null
  cmake -G Ninja -S /root/consumer -B /root/consumer/build -DCMAKE_BUILD_TYPE=Release > /dev/null
  cmake --build /root/consumer/build > /dev/null
  echo "a program of the library says: $(/root/consumer/build/uses_tilecast)"
  apt-get purge -y -qq tilecast libtilecast-dev > /dev/null
  test ! -e /usr/bin/tilecast && test ! -e /usr/include/tilecast && test ! -e /usr/share/doc/tilecast'
echo "packages: installed, used and removed"
