#!/bin/sh
# Measures what this machine's NVIDIA GPU really takes, in the time given; a later run goes on.
#   measure/run.sh --list few.csv           (kernels that tilecast calibrate --suggest lists)
#   measure/run.sh --minutes 9 -o DIR       (--help lists the rest; --dry-run needs no GPU
#   and writes its made-up rows into a temporary folder)
# Needs python3; nvcc and cuBLASLt for kernels, cuDNN with its frontend for convolutions and
# attention, a Python with PyTorch and Transformers ($TILECAST_PYTHON) for whole models. What is
# missing is said, and the rest is measured.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../build/measure
log=$build.log

# The libraries may lie in the site-packages of the Python that has PyTorch; this card's architecture
# alone builds fastest.
build_worker() {
  card=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | head -n 1 | tr -d .) || card=
  cmake -S "$here" -B "$build" -DPython3_EXECUTABLE="$(command -v "${TILECAST_PYTHON:-python3}")" \
    ${card:+-DCMAKE_CUDA_ARCHITECTURES="$card-real"} -DTILECAST_CUDA_PACKAGES="${TILECAST_CUDA_PACKAGES:-}" || return 1
  ! grep -q "is not built" "$log" || return 1
  cmake --build "$build" -j
}

case " $* " in
  *" --help "* | *" -h "* | *" --show-families "* | *" --dry-run "*) ;;
  *)
    mkdir -p "$(dirname "$build")"
    if build_worker > "$log" 2>&1; then
      grep -h "built without cuDNN" "$log" >&2 || true
    else
      grep -h "is not built" "$log" >&2 || { tail -n 20 "$log" >&2; echo "building the kernels' worker failed: $log" >&2; }
    fi
    ;;
esac
# Nothing but measurements is written: no __pycache__ beside the sources.
PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1 exec python3 -m kit "$@"
