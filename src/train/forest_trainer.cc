#include "train/forest_trainer.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <memory>

#include "base/check.h"
#include "base/json.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

// The rate is a trade of accuracy for speed: twice the trees at half the rate do as well.
// Absolute instead of squared loss is 1.3 to 1.7 times worse (research/experiments.md). The shares
// are usual ones.
constexpr const char* kSettings[][2] = {{"objective", "reg:squarederror"},
                                        {"base_score", "0"},
                                        {"tree_method", "hist"},
                                        {"eta", "0.2"},
                                        {"lambda", "1"},
                                        {"subsample", "0.8"},
                                        {"nthread", "1"},
                                        {"colsample_bytree", "0.7"},
                                        {"verbosity", "0"}};

// Types of XGBoost's C API (xgboost/c_api.h of 1.7): its headers are not needed.
using DMatrixHandle = void*;
using BoosterHandle = void*;
using bst_ulong = uint64_t;

/// The functions of XGBoost's C API that training calls. The library is loaded when the first
/// forest is trained: a program that is linked with it takes 3 ms longer to start, forecasts too.
struct XgboostApi {
  const char* (*last_error)();
  int (*create_matrix)(const float* data, bst_ulong rows, bst_ulong columns, float missing,
                       DMatrixHandle* out);
  int (*set_float_info)(DMatrixHandle matrix, const char* field, const float* array,
                        bst_ulong size);
  int (*free_matrix)(DMatrixHandle matrix);
  int (*create_booster)(const DMatrixHandle matrices[], bst_ulong count, BoosterHandle* out);
  int (*set_param)(BoosterHandle booster, const char* name, const char* value);
  int (*update)(BoosterHandle booster, int iteration, DMatrixHandle matrix);
  int (*dump)(BoosterHandle booster, const char* feature_map, int with_stats, const char* format,
              bst_ulong* count, const char*** texts);
  int (*free_booster)(BoosterHandle booster);

  void check(int status) const {
    if (status != 0) throw Error(ErrorKind::kInternal, fmt::format("XGBoost: {}", last_error()));
  }
};

template <typename Function>
void find_symbol(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("the XGBoost library of this machine has no function {}", name));
}

XgboostApi load_xgboost() {
  void* library = dlopen("libxgboost.so.0", RTLD_NOW | RTLD_LOCAL);  // its name on Debian
  if (library == nullptr) library = dlopen("libxgboost.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("training needs XGBoost, which cannot be loaded ({}); on Debian, "
                            "install libxgboost0",
                            dlerror()));
  XgboostApi api{};
  find_symbol(library, "XGBGetLastError", api.last_error);
  find_symbol(library, "XGDMatrixCreateFromMat", api.create_matrix);
  find_symbol(library, "XGDMatrixSetFloatInfo", api.set_float_info);
  find_symbol(library, "XGDMatrixFree", api.free_matrix);
  find_symbol(library, "XGBoosterCreate", api.create_booster);
  find_symbol(library, "XGBoosterSetParam", api.set_param);
  find_symbol(library, "XGBoosterUpdateOneIter", api.update);
  find_symbol(library, "XGBoosterDumpModelEx", api.dump);
  find_symbol(library, "XGBoosterFree", api.free_booster);
  return api;
}

const XgboostApi& xgboost() {
  static const XgboostApi api = load_xgboost();
  return api;
}

struct FreeMatrix {
  void operator()(void* handle) const { xgboost().free_matrix(handle); }
};
struct FreeBooster {
  void operator()(void* handle) const { xgboost().free_booster(handle); }
};

/// Writes a node of XGBoost's dump into place `at` of the complete tree and fills all below it.
void place(const Json& node, size_t at, Forest::Tree& tree) {
  if (!node.contains("leaf")) {
    const Json& children = node.at("children");
    const bool first_is_yes = children.at(0).at("nodeid") == node.at("yes");
    const std::string split = node.at("split").get<std::string>();  // "f12"
    tree.feature[at] = static_cast<uint8_t>(std::stoi(split.substr(1)));
    // The method "hist" splits at values of the data, which are whole steps; the dump prints them
    // rounded.
    tree.threshold[at] =
        Forest::quantized(node.at("split_condition").get<float>(), Forest::kInputSteps);
    place(children.at(first_is_yes ? 0 : 1), 2 * at + 1, tree);
    place(children.at(first_is_yes ? 1 : 0), 2 * at + 2, tree);
  } else if (at >= Forest::kInner) {
    tree.leaf[at - Forest::kInner] =
        Forest::quantized(node.at("leaf").get<float>(), Forest::kLeafSteps);
  } else {
    // A leaf that ends early: both ways lead to it.
    place(node, 2 * at + 1, tree);
    place(node, 2 * at + 2, tree);
  }
}

}  // namespace

std::string forest_settings() {
  std::string text;
  for (const auto& [name, value] : kSettings) text += fmt::format("{}={};", name, value);
  return text;
}

void require_xgboost() { xgboost(); }

Forest train_forest(const ForestTask& task) {
  const size_t rows = task.targets.size();
  TILECAST_CHECK(task.inputs.size() == rows * task.width && task.weights.size() == rows)
      << "a forest's rows do not fit each other";
  std::vector<float> inputs = task.inputs;
  for (float& x : inputs)
    x = static_cast<float>(Forest::quantized(x, Forest::kInputSteps)) / Forest::kInputSteps;
  const XgboostApi& api = xgboost();
  DMatrixHandle raw_matrix = nullptr;
  api.check(api.create_matrix(inputs.data(), rows, task.width,
                              std::numeric_limits<float>::quiet_NaN(), &raw_matrix));
  const std::unique_ptr<void, FreeMatrix> matrix(raw_matrix);
  api.check(api.set_float_info(matrix.get(), "label", task.targets.data(), rows));
  api.check(api.set_float_info(matrix.get(), "weight", task.weights.data(), rows));
  BoosterHandle raw_booster = nullptr;
  api.check(api.create_booster(&raw_matrix, 1, &raw_booster));
  const std::unique_ptr<void, FreeBooster> booster(raw_booster);
  for (const auto& [name, value] : kSettings) api.check(api.set_param(booster.get(), name, value));
  api.check(api.set_param(booster.get(), "max_depth", std::to_string(task.depth).c_str()));
  api.check(api.set_param(booster.get(), "min_child_weight",
                          fmt::format("{}", task.leaf_weight).c_str()));
  api.check(api.set_param(booster.get(), "seed", std::to_string(task.seed).c_str()));
  for (int i = 0; i < task.trees; ++i) api.check(api.update(booster.get(), i, matrix.get()));
  bst_ulong count = 0;
  const char** dumps = nullptr;
  api.check(api.dump(booster.get(), "", 0, "json", &count, &dumps));
  std::vector<Forest::Tree> trees;
  for (bst_ulong i = 0; i < count; ++i) {
    Forest::Tree tree;
    place(Json::parse(dumps[i]), 0, tree);
    trees.push_back(tree);
  }
  return Forest(std::move(trees));
}

}  // namespace tilecast
