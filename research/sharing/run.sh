#!/bin/sh
# Makes the graphs, the forecasts, the tables and the figures of README.md: run.sh TILECAST PYTHONPATH_OF_TILECAST OUT
# PYTHON needs torch (make_models.py only), numpy, pandas and matplotlib (plots.py, evaluate_mig.py).
set -e
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1        # small systems: threads only slow them
here=$(dirname "$0"); tilecast=$1; bindings=$2; out=$3
mkdir -p "$out/models"
PYTHONPATH=$bindings ${TORCH_PYTHON:-${PYTHON:-python3}} -W ignore "$here/make_models.py" "$out/models" > "$out/models.log"
${PYTHON:-python3} "$here/forecasts.py" "$tilecast" "$out/models" "$out/alone.json" > "$out/forecasts.log"
${PYTHON:-python3} "$here/mig_forecasts.py" "$tilecast" "$out/models" "$out/mig.json"
${PYTHON:-python3} "$here/evaluate.py" "$out/alone.json"
${PYTHON:-python3} "$here/sensitivity.py" "$out/alone.json"
${PYTHON:-python3} "$here/spread.py" "$out/alone.json"
${PYTHON:-python3} "$here/evaluate_mig.py" "$out/mig.json" "$here"
${PYTHON:-python3} "$here/plots.py" "$out/alone.json" "$here"
