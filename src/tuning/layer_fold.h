#pragma once

#include <cstdint>

#include "tuning/conv_problem.h"
#include "tuning/gemm_problem.h"

namespace tilecast::tuning {

/// The fold of the problem's layer: everything but pass, precision, layout, input size and batch.
/// Training and its judgement never share a layer; the same hash as tools/tuner/features.py.
int layer_fold(const ConvProblem& problem, uint64_t seed, int folds);

/// The fold of a product's size: the same in all types and layouts.
int layer_fold(const GemmProblem& problem, uint64_t seed, int folds);

}  // namespace tilecast::tuning
