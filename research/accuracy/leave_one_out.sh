#!/bin/sh
# Errors on GPUs that the weights never saw: for each GPU, train without any of its rows and evaluate
# on its rows of the NeuSight data set (dataset/test for NVIDIA, dataset_amd/test for AMD, and the
# whole models). The intervals of each come from leaving out the others in turn. Writes one JSON per
# GPU and a table in Markdown; about a minute a GPU on two cores.
#   research/accuracy/leave_one_out.sh <scripts/asplos of the NeuSight repository> <output folder> [train options]
set -eu
data=$1
out=$2
shift 2
tilecast=$(dirname "$0")/../../build/release/tilecast
mkdir -p "$out"
for gpu in nvidia-p4 nvidia-p100-pcie-16gb nvidia-t4 nvidia-v100-pcie-32gb nvidia-a100-pcie-40gb amd-mi100 amd-mi210; do
  echo "leaving out $gpu"
  "$tilecast" train --data "$data/data" -o "$out/$gpu" --exclude-gpu "$gpu" "$@" > "$out/$gpu.train.txt"
  for part in data/dataset/test data/dataset_amd/test data/dataset_amd/train label; do
    "$tilecast" evaluate "$data/$part" --weights "$out/$gpu" --format json -o "$out/$gpu.$(echo $part | tr / _).json"
  done
done
python3 "$(dirname "$0")/leave_one_out_table.py" "$out" > "$out/table.md"
cat "$out/table.md"
