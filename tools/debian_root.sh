# Roots of fresh Debian machines, for scripts that prove what such a machine can do. To be sourced; needs root.
#   debian_root FOLDER PACKAGES   makes a root with these packages (a,b,c), from the package source of this machine's apt
#   debian_sources FOLDER         gives apt there the package source, proxies and keys of this machine
#   mount_root FOLDER             mounts what commands need there; ends with the script
#   in_root FOLDER COMMAND        runs the shell command there; of this environment it gets the proxies
command -v debootstrap > /dev/null || apt-get install -y -qq debootstrap > /dev/null
release=${TILECAST_DEBIAN:-bookworm}
mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
  awk -v r=bookworm '$2 == r && $3 == "main" {print $1; exit}')
[ -n "$mirror" ] || { echo "no package source for $release in apt's configuration" >&2; exit 1; }
mounted=

debian_root() {
  debootstrap --variant=minbase --include="$2" $release "$1" "$mirror" > "$1.log"
  cp -L /etc/resolv.conf "$1/etc/resolv.conf" 2> /dev/null || true
  cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/" 2> /dev/null || true
}

debian_sources() {
  rm -rf "$1/etc/apt/sources.list" "$1/etc/apt/sources.list.d"
  mkdir -p "$1/etc/apt/sources.list.d" "$1/etc/apt/apt.conf.d" "$1/usr/share/keyrings"
  echo "deb $mirror $release main" > "$1/etc/apt/sources.list"
  grep -lsiE 'proxy|CaInfo|Verify-Peer' /etc/apt/apt.conf /etc/apt/apt.conf.d/* | xargs -r -I{} cp {} "$1/etc/apt/apt.conf.d/" || true
}

mount_root() {
  mounted="$1/dev/pts $1/dev $1/proc $mounted"
  mount -t proc proc "$1/proc"
  mount --bind /dev "$1/dev"
  mount --bind /dev/pts "$1/dev/pts"
}

unmount_roots() {
  for place in $mounted; do
    umount "$place" 2> /dev/null || true
  done
}
trap unmount_roots EXIT

in_root() {
  chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" \
    sh -ec "$2"
}
