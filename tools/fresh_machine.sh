#!/bin/sh
# Proves the README's two commands on fresh Debian 12 machines: two new roots made with debootstrap,
# from the package source of this machine's own apt configuration, each with git and apt only. In one
# the repository is cloned and the first command run, in the other the second. Needs root.
#   tools/fresh_machine.sh [folder for the roots]
set -eu
repository=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
. "$repository/tools/debian_root.sh"

fresh_root() {
  root=$1
  [ -d "$folder/base" ] || debian_root "$folder/base" git,ca-certificates
  cp -a "$folder/base" "$root"
  debian_sources "$root"
  mount_root "$root"
  git clone -q --bare "$repository" "$root/tilecast.git"
}

run_there() {
  echo "== $1: git clone, then: $2"
  in_root "$1" "cd /root && git clone -q /tilecast.git tilecast && cd tilecast && $2"
}

fresh_root "$folder/first"
run_there "$folder/first" "sh tools/quickstart.sh"
fresh_root "$folder/second"
run_there "$folder/second" "sh tools/test.sh"
echo "fresh machine: both commands pass"
