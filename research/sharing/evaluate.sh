#!/bin/sh
# Judges `tilecast share` on measured jobs: pairs of Gavel (K80, P100, V100) and slices of MISO (A100): evaluate.sh TILECAST [OPTIONS]
# OPTIONS go to the evaluation of pairs: --format svg -o pairs.svg
set -e
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../../../shared/data/colocation # beside the repository
tilecast=$(realpath "$1")
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar xJf "$here/models.tar.xz" -C "$folder" # graphs that make_models.py wrote
pairs() {
  (cd "$folder" && "$tilecast" evaluate "$data/gavel.csv.xz" --jobs "$here/gavel_jobs.json" --series motivation \
    --gpu p100=nvidia-p100-pcie-16gb,v100=nvidia-v100-sxm2-16gb --how mps,k80=time-slice "$@")
}
if [ $# -gt 0 ]; then
  pairs "$@" > "$folder/out"
  cat "$folder/out"
  exit
fi
pairs --pairs
(cd "$folder" && "$tilecast" evaluate "$data/miso_mig.csv" --jobs "$here/miso_jobs.json" --gpu A100-PCIE-40GB)
