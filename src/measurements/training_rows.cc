#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/json.h"
#include "base/text.h"
#include "measurements/layouts.h"
#include "tilecast/error.h"

// Published training runs (docs/reference/measurements.md): MPT under FSDP (llm-foundry), tuned
// runs of Megatron-Bridge, peaks of memory of Megatron-LM's tests. Each row becomes the options of
// a forecast; what no option describes is listed with the reason.

namespace tilecast {
namespace {

/// No forecast describes the row.
struct NotDescribed {
  std::string why;
};

class RunRow {
 public:
  RunRow(const CsvTable& table, size_t row) : table_(table), row_(row) {}

  const std::string& text(std::string_view column) const {
    return table_.rows[row_][table_.require_column(column)];
  }
  bool is(std::string_view column, std::string_view value) const { return text(column) == value; }
  int64_t integer(std::string_view column, int64_t otherwise = 1) const {
    return text(column).empty() ? otherwise : table_.integer(row_, table_.require_column(column));
  }
  double number(std::string_view column) const {
    return text(column).empty() ? 0 : table_.number(row_, table_.require_column(column));
  }

 private:
  const CsvTable& table_;
  size_t row_;
};

using Options = std::vector<std::pair<std::string, std::string>>;

/// The nodes of these runs.
std::string cluster_of_gpu(const std::string& gpu) {
  constexpr std::pair<std::string_view, const char*> kClusters[] = {
      {"nvidia-a100-sxm4-40gb", "dgx-a100-40gb"},
      {"nvidia-a100-sxm4-80gb", "dgx-a100"},
      {"nvidia-h100-sxm5-80gb", "dgx-h100"},
      {"nvidia-h200-sxm-141gb", "hgx-h200"},
      {"nvidia-b200-sxm-180gb", "dgx-b200"},
      {"nvidia-b300-sxm", "dgx-b300"},
      {"nvidia-gb200", "gb200-nvl72"},
      {"nvidia-gb300", "gb300-nvl72"}};
  for (const auto& [id, cluster] : kClusters) {
    if (id == gpu) return cluster;
  }
  throw NotDescribed{fmt::format("no cluster of '{}' is known", shown_name(gpu))};
}

void read_runs(const CsvTable& table, Collector& collector,
               ModelMeasurement (*describe)(const RunRow&)) {
  for (size_t row = 0; row < table.rows.size(); ++row) {
    try {
      const RunRow run(table, row);
      ModelMeasurement m = describe(run);
      m.gpu = run.text("gpu");
      m.mode = "training";
      m.source = table.where;
      m.options.emplace_back("mode", "training");
      m.options.emplace_back("cluster", cluster_of_gpu(m.gpu));
      collector.add_model(std::move(m));
    } catch (const NotDescribed& reason) {
      collector.skip(table.where, reason.why);
    }
  }
}

// MPT without ALiBi is GPT-2 without dropout.

ModelMeasurement describe_fsdp(const RunRow& row) {
  if (row.is("cpu_offload", "1")) throw NotDescribed{"parameters are moved to the host's memory"};
  ModelMeasurement m;
  m.model = fmt::format("mpt-{}", row.text("model"));
  m.config_text = fmt::format(
      R"({{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": {}, "n_head": {}, )"
      R"("n_layer": {}, "vocab_size": {}, "n_positions": {}, "activation_function": "gelu", )"
      R"("resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}})",
      row.integer("d_model"), row.integer("n_heads"), row.integer("n_layers"), row.integer("vocab"),
      row.integer("seq"));
  m.seq = row.integer("seq");
  m.batch = row.integer("global_batch");
  m.dtype = row.is("precision", "amp_fp8") ? "fp8" : "bf16";
  const bool checkpoints = row.is("checkpointing", "1");
  m.option = checkpoints ? "fsdp, checkpointing" : "fsdp";
  m.measured_s = row.number("step_s");
  m.options = {{"dp", row.text("gpus")},
               {"batch", row.text("global_batch")},
               {"micro-batch-size", row.text("micro_batch")},
               {"seq", row.text("seq")},
               {"dtype", m.dtype},
               {"main-params-dtype", "fp32"},
               {"zero", row.is("sharding", "FULL_SHARD") ? "3" : "2"},
               {"attention", "flash"},
               {"optimizer", "adamw"},
               {"optimizer-impl", "foreach"},
               {"software-version", "2.1"},  // the newest of these runs
               {"checkpointing", checkpoints ? "full" : "none"}};
  return m;
}

// Tuned runs of Megatron-Bridge.

struct BundledModel {
  std::string_view repository;
  const char* name;
  int64_t layers;
  bool predicts_more = false;  ///< trained with layers for multi-token prediction
};
constexpr BundledModel kBundled[] = {{"meta-llama/Meta-Llama-3-8B", "llama-3-8b", 32},
                                     {"meta-llama/Meta-Llama-3-70B", "llama-3-70b", 80},
                                     {"meta-llama/Llama-3.1-405B", "llama-3.1-405b", 126},
                                     {"openai/gpt-oss-120b", "gpt-oss-120b", 36},
                                     {"Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b", 48},
                                     {"Qwen/Qwen3-235B-A22B", "qwen3-235b-a22b", 94},
                                     {"deepseek-ai/DeepSeek-V3", "deepseek-v3", 61, true}};

const BundledModel& bundled_model(const std::string& repository) {
  const auto* const found =
      std::find_if(std::begin(kBundled), std::end(kBundled),
                   [&](const BundledModel& model) { return model.repository == repository; });
  if (found == std::end(kBundled))
    throw NotDescribed{fmt::format("no bundled model is '{}'", shown_name(repository))};
  return *found;
}

void add_parts(Options& options, int64_t layers, int64_t pp, int64_t vpp) {
  if (vpp <= 1) return;
  const int64_t parts = checked_product({pp, vpp});
  if (parts < 1) throw NotDescribed{"a degree of parallelism is below 1"};
  options.emplace_back("pipeline-schedule", "interleaved");
  options.emplace_back("num-layers-per-virtual-pipeline-stage",
                       std::to_string(ceil_divide(layers, parts)));
}

/// Modules of selective recomputation that options name; throws NotDescribed for others.
void add_recomputation(Options& options, const std::string& modules) {
  const std::vector<std::string> names = split(modules, ' ');
  if (modules.empty()) return;
  for (const std::string& name : names) {
    constexpr std::string_view kKnown[] = {"core_attn",   "layernorm", "moe_act",
                                           "mla_up_proj", "mlp",       "moe"};
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown))
      throw NotDescribed{fmt::format("recomputation of '{}' is not forecast", shown_name(name))};
  }
  options.emplace_back("checkpointing", "selective");
  options.emplace_back("recompute-modules", join(names, ","));
}

/// GPUs of a replica of the model; throws NotDescribed for degrees that are none.
int64_t replica_gpus(int64_t tp, int64_t pp, int64_t cp) {
  if (tp < 1 || pp < 1 || cp < 1) throw NotDescribed{"a degree of parallelism is below 1"};
  return checked_product({tp, pp, cp});
}

/// `--fp8-recipe` of the column `scaling`; throws NotDescribed for others.
const char* recipe_of_scaling(const std::string& scaling) {
  constexpr std::pair<std::string_view, const char*> kRecipes[] = {
      {"current scaling", "tensorwise"},
      {"delayed scaling", "delayed"},
      {"block scaling", "blockwise"},
      {"mxfp8", "mxfp8"}};
  for (const auto& [words, recipe] : kRecipes) {
    if (scaling == words) return recipe;
  }
  throw NotDescribed{fmt::format("no recipe of FP8 scales as '{}'", shown_name(scaling))};
}

/// SFT and LoRA keep one copy of the weights in FP8, and pack SQuAD's questions with their
/// paragraphs (recipes/common.py of megatron-bridge). The FLOPs that the table states of LoRA's
/// step count attention by the squared lengths (flop_utils.py): they fit 150 to 370 tokens, rounded
/// as they are. Attention to so few is 1 % of the step either way.
constexpr const char* kSquadTokens = "256";

ModelMeasurement describe_megatron(const RunRow& row) {
  const BundledModel& model = bundled_model(row.text("hf_model"));
  if (row.is("variant", "tokendrop"))
    throw NotDescribed{"tokens beyond an expert's capacity are dropped"};
  if (model.predicts_more) throw NotDescribed{"layers for multi-token prediction"};
  const int64_t tp = row.integer("tp"), pp = row.integer("pp"), cp = row.integer("cp");
  const int64_t dp = row.integer("gpus") / replica_gpus(tp, pp, cp);
  const int64_t ep = row.integer("ep");
  ModelMeasurement m;
  m.model = model.name;
  m.seq = row.integer("seq");
  m.batch = row.integer("global_batch");
  m.dtype = row.text("dtype");
  m.option = row.is("task", "pretraining") ? (row.integer("ep") > 1 ? "experts" : "dense")
                                           : row.text("task");
  m.measured_s = row.number("step_s");
  const bool sharded = row.integer("fsdp", 0) > 0, lora = row.is("task", "lora");
  m.options = {{"software", "megatron"},
               {"dp", std::to_string(dp)},
               {"tp", std::to_string(tp)},
               {"pp", std::to_string(pp)},
               {"cp", std::to_string(cp)},
               {"ep", std::to_string(ep)},
               {"batch", row.text("global_batch")},
               {"micro-batch-size", row.text("micro_batch")},
               {"seq", row.text("seq")},
               {"dtype", m.dtype},
               {"optimizer", "adam"},
               {"attention", "flash"},
               {"cross-entropy", "compiled"},
               {"zero", sharded ? "3"
                        : lora  ? "0"
                                : "1"}};
  if (tp > 1) m.options.emplace_back("sequence-parallel", "on");
  if (tp > 1 && ep > 1) m.options.emplace_back("expert-tensor-parallel-size", "1");
  if (tp > 1 && ep == 1) m.options.emplace_back("tp-comm-overlap", "on");
  if (row.is("recipe_a2a_overlap", "1"))
    m.options.emplace_back("overlap-moe-expert-parallel-comm", "on");
  // perf_recipes of Megatron-Bridge: DeepEP's kind of kernels, the fused cross entropy, adapters of
  // the joint query, key and value projection alone, with its default rank.
  if (ep > 1 && (row.is("recipe_dispatcher", "hybridep") || row.is("recipe_dispatcher", "deepep")))
    m.options.emplace_back("moe-token-dispatcher-type", "flex");
  if (lora) {
    m.options.emplace_back("lora-rank", "32");
    m.options.emplace_back("lora-targets", "q_proj,k_proj,v_proj");
  }
  if (!lora) m.options.emplace_back("main-params-dtype", "fp32");
  if (!row.is("task", "pretraining")) {
    m.options.emplace_back("packed-sequence-length", kSquadTokens);
    if (m.dtype == "fp8") m.options.emplace_back("parameter-transpose-cache", "off");
  }
  if (m.dtype == "fp8")
    m.options.emplace_back("fp8-recipe", recipe_of_scaling(row.text("scaling")));
  add_parts(m.options, model.layers, pp, row.integer("vpp"));
  add_recomputation(m.options, row.text("recipe_recompute"));
  return m;
}

// Peaks of memory of Megatron-LM's tests.

/// Throws NotDescribed for rows whose set-up no option describes.
void check_described(const RunRow& row, const Json& arguments) {
  const std::pair<const char*, bool> reasons[] = {
      {"no config describes the model", row.text("config").empty()},
      {"parameters are stored in FP8", row.is("fp8_param_gather", "1")},
      {"the optimizer is not forecast", !row.is("optimizer", "adam")},
      {"the run resumes from a checkpoint", row.is("second_run", "1")},
      {"the number of GPUs is not known", row.integer("dp", 0) == 0},
      {"instances of the distributed optimizer", !row.is("dist_optimizer_instances", "1")},
      {"gradients of the embedding are deferred", row.is("defer_embedding_wgrad", "1")},
      // Megatron-LM refuses tensor parallelism with experts but without sequence parallelism.
      {"experts divided by ranks without sequence parallelism",
       row.integer("etp") > 1 && row.text("etp") != row.text("tp") && row.integer("tp") > 1 &&
           !row.is("sequence_parallel", "1") && arguments.contains("num-experts")},
      {"layers for multi-token prediction", arguments.contains("mtp-num-layers")}};
  for (const auto& [why, there] : reasons) {
    if (there) throw NotDescribed{why};
  }
}

/// Containers `lts` before this day ran unfused attention where Transformer Engine chose.
constexpr std::string_view kFusedFrom = "2025-11-06";

bool has_unfused_attention(const RunRow& row) {
  return row.is("attention_backend", "unfused") || row.is("attention_backend", "local") ||
         row.is("transformer_impl", "local") ||
         (row.is("attention_backend", "auto") && row.is("env", "lts") &&
          row.text("date") < kFusedFrom);
}

Options memory_options(const RunRow& row, const Json& arguments) {
  const auto on = [&](const char* column) { return row.is(column, "1") ? "on" : "off"; };
  Options options = {{"software", "megatron"},
                     {"batch", row.text("global_batch")},
                     {"micro-batch-size", row.text("micro_batch")},
                     {"seq", row.text("seq")},
                     {"zero", row.is("fsdp", "1") ? "3" : row.text("dist_optimizer")},
                     {"dtype", row.text("fp8").empty() ? row.text("precision") : "fp8"},
                     {"main-params-dtype", row.is("main_params", "fp32") ? "fp32" : "as-model"},
                     {"attention", has_unfused_attention(row) ? "eager" : "flash"},
                     {"optimizer", "adam"},
                     {"overlap-grad-reduce", on("overlap_grad_reduce")}};
  for (const char* degree : {"dp", "tp", "pp", "cp", "ep"})
    options.emplace_back(degree, row.text(degree));
  if (row.integer("tp") > 1) options.emplace_back("sequence-parallel", on("sequence_parallel"));
  const bool own_rows = row.integer("tp") == 1 || row.is("sequence_parallel", "1");
  if (row.integer("etp") != row.integer("tp") && !row.text("etp").empty() && own_rows &&
      arguments.contains("num-experts"))
    options.emplace_back("expert-tensor-parallel-size", row.text("etp"));
  if (!row.text("fp8").empty())
    options.emplace_back("fp8-recipe",
                         row.text("fp8_recipe").empty() ? "delayed" : row.text("fp8_recipe"));
  if (!row.text("decoder_seq").empty())
    options.emplace_back("decoder-seq", row.text("decoder_seq"));
  if (!row.text("cross_entropy_fusion").empty()) options.emplace_back("cross-entropy", "compiled");
  if (row.is("recompute", "full")) options.emplace_back("checkpointing", "full");
  if (row.is("recompute", "selective")) add_recomputation(options, row.text("recompute_modules"));
  add_parts(options, row.integer("layers"), row.integer("pp"), row.integer("vpp"));
  if (!row.text("chunk_layers").empty())
    options.emplace_back("pipeline-layers", join(split(row.text("chunk_layers"), ' '), ","));
  if (const auto divisor = arguments.find("make-vocab-size-divisible-by");
      divisor != arguments.end())
    options.emplace_back("make-vocab-size-divisible-by", divisor->dump());
  return options;
}

ModelMeasurement describe_peak(const RunRow& row) {
  const Json arguments = parse_json(row.text("args"), row.text("case"));
  check_described(row, arguments);
  ModelMeasurement m;
  m.model = row.text("case");
  m.config_text = row.text("config");
  m.seq = row.integer("seq");
  m.batch = row.integer("global_batch");
  m.dtype = row.text("precision");
  m.option = fmt::format(
      "{} {}", arguments.contains("num-experts") ? "experts" : row.text("family"), row.text("env"));
  m.measured_s = row.number("step_s");
  m.peak_bytes = row.integer("peak_allocated_bytes", 0);
  m.options = memory_options(row, arguments);
  return m;
}

}  // namespace

extern const LayoutDef kFsdpRunsLayout, kMegatronRunsLayout, kMegatronPeaksLayout;

const LayoutDef kFsdpRunsLayout = {
    "fsdp-runs",
    {"d_model", "n_heads", "n_layers", "sharding", "micro_batch", "step_s"},
    [](const CsvTable& table, Collector& c) { read_runs(table, c, describe_fsdp); }};

const LayoutDef kMegatronRunsLayout = {
    "megatron-runs",
    {"hf_model", "recipe_recompute", "recipe_a2a_overlap", "recipe_dispatcher", "scaling", "vpp",
     "step_s"},
    [](const CsvTable& table, Collector& c) { read_runs(table, c, describe_megatron); }};

const LayoutDef kMegatronPeaksLayout = {
    "megatron-peaks",
    {"case", "args", "config", "peak_allocated_bytes"},
    [](const CsvTable& table, Collector& c) { read_runs(table, c, describe_peak); }};

}  // namespace tilecast
