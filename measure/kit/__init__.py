"""The measurement kit's driver: which cases, in which order, for how long, and where results go.

The GPU is touched only by two workers that answer requests: measure/worker (CUDA C++, kernels) and
measure/models.py (PyTorch, whole models). A worker that crashes or hangs costs one case.
"""
