#!/bin/sh
# Installs the wheels of this machine's architecture in fresh Debian roots that have Python and venv, no compiler and no other package:
# 3.9 on Debian 11 (glibc 2.31), 3.11 on Debian 12, 3.13 on Debian 13; and runs tests/wheel_test.py there. Needs root.
#   tools/check_wheels.sh FOLDER_OF_THE_WHEELS [folder for the roots [IMPORT_MS]]
set -eu
cd "$(dirname "$0")/.."
wheels=$(cd "$1" && pwd)
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
. tools/debian_root.sh
tested=0
for pair in cp39:bullseye cp311:bookworm cp313:trixie; do
  tag=${pair%%:*}
  wheel=$(ls "$wheels"/tilecast-*-"$tag"-*_"$(uname -m)".whl 2> /dev/null || true)
  [ -n "$wheel" ] || continue
  release=${pair#*:}
  root=$folder/$release
  [ -d "$root" ] || debian_root "$root" python3-minimal,python3-venv,ca-certificates
  mount_root "$root"
  rm -rf "$root/root/wheel" "$root/root/tests" "$root/root/data" "$root/root/environment"
  mkdir -p "$root/root/wheel" "$root/root/tests"
  cp "$wheel" "$root/root/wheel/"
  cp -r tests/python tests/wheel_test.py tests/data "$root/root/tests/"
  cp -r data README.md docs "$root/root/"
  in_root "$root" '
    if command -v cc || command -v g++; then echo "the root has a compiler" >&2; exit 1; fi
    cd /root && python3 -m venv environment
    environment/bin/pip install -q --no-index --no-deps wheel/*.whl
    environment/bin/python tests/wheel_test.py environment '"${3:-5}"
  tested=$((tested + 1))
done
[ "$tested" -gt 0 ] || { echo "no wheel of this architecture in $wheels" >&2; exit 1; }
echo "wheels: $tested tested in fresh roots"
