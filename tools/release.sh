#!/bin/sh
# Makes and checks the files of a release in FOLDER: source distribution, wheels, packages of Debian, bill of materials, the documents'
# site, checksums. It publishes nothing. Takes about an hour on 2 cores; needs root (fresh Debian roots), PyPI and Debian's packages.
#   tools/release.sh FOLDER
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
out=$(cd "$1" && pwd)
[ -z "$(git status --porcelain)" ] || { echo "tools/release.sh: files differ from the commit" >&2; exit 1; }
sh tools/setup.sh
version=$(sed -n 's/^project(tilecast VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
grep -q "^## $version" CHANGELOG.md || { echo "tools/release.sh: CHANGELOG.md has no section $version" >&2; exit 1; }
grep -q "^version: $version" CITATION.cff || { echo "tools/release.sh: CITATION.cff is not of version $version" >&2; exit 1; }
python3 tests/surface_test.py
python3 tools/wheels.py "$out" --arch x86_64 aarch64
sh tools/check_wheels.sh "$out"
sh tools/package_deb.sh "$out"
sh tools/check_deb.sh "$out"
python3 tools/sbom.py "$out/tilecast-$version.cdx.json"
sh tools/site.sh build/package/tilecast
tar -C build/site/site --sort=name --mtime="@$(git log -1 --format=%ct)" --owner=0 --group=0 -cJf "$out/tilecast-$version-site.tar.xz" .
(cd "$out" && sha256sum ./*.whl ./*.tar.gz ./*.deb ./*.json ./*.tar.xz > SHA256SUMS)
echo "release $version: $out"
