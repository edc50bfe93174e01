#!/bin/sh
# Proves the README's two commands on fresh Debian 12 machines: two new roots made with debootstrap,
# from the package source of this machine's own apt configuration, each with git and apt only. In one
# the repository is cloned and the first command run, in the other the second. Needs root.
#   tools/fresh_machine.sh [folder for the roots]
set -eu
repository=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$(mktemp -d)}
release=bookworm
mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
  awk -v r=$release '$2 == r && $3 == "main" {print $1; exit}')
[ -n "$mirror" ] || { echo "no package source for $release in apt's configuration" >&2; exit 1; }
mkdir -p "$folder"
command -v debootstrap > /dev/null || apt-get install -y -qq debootstrap

clean() {
  for mount in proc dev/pts dev; do
    umount "$folder/first/$mount" "$folder/second/$mount" 2> /dev/null || true
  done
}
trap clean EXIT

fresh_root() {
  root=$1
  [ -d "$folder/base" ] || debootstrap --variant=minbase --include=git,ca-certificates $release "$folder/base" "$mirror" > "$folder/debootstrap.log"
  cp -a "$folder/base" "$root"
  # The same sources, proxies and keys that this machine reaches its packages with.
  rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
  mkdir -p "$root/etc/apt/sources.list.d" "$root/etc/apt/apt.conf.d" "$root/usr/share/keyrings"
  echo "deb $mirror $release main" > "$root/etc/apt/sources.list"
  grep -lsiE 'proxy|CaInfo|Verify-Peer' /etc/apt/apt.conf /etc/apt/apt.conf.d/* | xargs -r -I{} cp {} "$root/etc/apt/apt.conf.d/" || true
  cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2> /dev/null || true
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2> /dev/null || true
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
  mount --bind /dev/pts "$root/dev/pts"
  git clone -q --bare "$repository" "$root/tilecast.git"
}

in_root() {
  root=$1
  shift
  echo "== $root: git clone, then: $*"
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" \
    sh -ec "cd /root && git clone -q /tilecast.git tilecast && cd tilecast && $*"
}

fresh_root "$folder/first"
in_root "$folder/first" "sh tools/quickstart.sh"
fresh_root "$folder/second"
in_root "$folder/second" "sh tools/test.sh"
echo "fresh machine: both commands pass"
