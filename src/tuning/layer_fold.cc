#include "tuning/layer_fold.h"

#include <fmt/format.h>

#include <string>

namespace tilecast::tuning {

namespace {

// FNV-1a, then MurmurHash3's finalizer: without it, layers that differ in the last size only would
// fall into neighbouring folds.
int fold_of(const std::string& text, uint64_t seed, int folds) {
  uint64_t hash = 14695981039346656037ull ^ seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  hash ^= hash >> 33;
  hash *= 0xFF51AFD7ED558CCDull;
  hash ^= hash >> 33;
  return static_cast<int>(hash % static_cast<uint64_t>(folds));
}

}  // namespace

int layer_fold(const ConvProblem& p, uint64_t seed, int folds) {
  return fold_of(fmt::format("{},{},{},{},{},{},{},{},{},{},{}", p.c, p.k, p.r, p.s, p.pad_h,
                             p.pad_w, p.stride_h, p.stride_w, p.dil_h, p.dil_w, p.group),
                 seed, folds);
}

int layer_fold(const GemmProblem& p, uint64_t seed, int folds) {
  return fold_of(fmt::format("{},{},{},{}", p.m, p.n, p.batch, p.k), seed, folds);
}

}  // namespace tilecast::tuning
