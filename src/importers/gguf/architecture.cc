#include "importers/gguf/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Reads the metadata of one file.
class Metadata {
 public:
  Metadata(const GgufHeader& header, const std::string& where) : header_(header), where_(where) {
    const GgufValue* found = find("general.architecture");
    const std::string* text = found == nullptr ? nullptr : std::get_if<std::string>(found);
    if (text == nullptr)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: 'general.architecture' is missing; expected a text", where));
    architecture_ = *text;
  }

  const std::string& architecture() const { return architecture_; }
  const std::string& where() const { return where_; }

  bool has_tensor(std::string_view name) const { return tensor(name) != nullptr; }
  const GgufTensor* tensor(std::string_view name) const {
    for (const GgufTensor& t : header_.tensors) {
      if (t.name == name) return &t;
    }
    return nullptr;
  }

  /// "llama.block_count" for the key "block_count". A list must have equal elements that are not 0.
  std::optional<int64_t> whole(const std::string& key) const {
    const std::string full = architecture_ + "." + key;
    const GgufValue* found = find(full);
    if (found == nullptr) return std::nullopt;
    if (const int64_t* value = std::get_if<int64_t>(found)) return *value;
    const auto* list = std::get_if<std::vector<int64_t>>(found);
    if (list == nullptr || list->empty())
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: '{}': expected a whole number", where_, shown_name(full)));
    if (std::any_of(list->begin(), list->end(), [&](int64_t v) { return v != list->front(); }))
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}: '{}' differs from layer to layer, which is not supported",
                              where_, shown_name(full)));
    return list->front();
  }

  int64_t required(const std::string& key) const {
    if (const std::optional<int64_t> value = whole(key)) return *value;
    throw Error(ErrorKind::kInput, fmt::format("{}: '{}.{}' is missing; expected a whole number",
                                               where_, architecture_, key));
  }

  bool has_number(const std::string& key) const {
    const GgufValue* found = find(architecture_ + "." + key);
    const double* value = found == nullptr ? nullptr : std::get_if<double>(found);
    return value != nullptr && *value != 0;
  }

 private:
  const GgufValue* find(std::string_view key) const {
    const auto found = header_.values.find(key);
    return found == header_.values.end() ? nullptr : &found->second;
  }

  const GgufHeader& header_;
  const std::string& where_;
  std::string architecture_;
};

void copy(const Metadata& m, const std::string& key, Json& config, const char* field) {
  if (const std::optional<int64_t> value = m.whole(key)) config[field] = *value;
}

/// Whether linear layers have biases shows in the tensors.
void attention_bias(const Metadata& m, Json& config) {
  config["attention_bias"] =
      m.has_tensor("blk.0.attn_q.bias") || m.has_tensor("blk.0.attn_qkv.bias");
}

void experts(const Metadata& m, Json& config, const char* count, const char* ffn_dim) {
  config[count] = m.required("expert_count");
  config["num_experts_per_tok"] = m.required("expert_used_count");
  config[ffn_dim] =
      m.whole("expert_feed_forward_length").value_or(m.required("feed_forward_length"));
  copy(m, "leading_dense_block_count", config, "first_k_dense_replace");
  copy(m, "expert_shared_count", config, "n_shared_experts");
}

void llama(const Metadata& m, Json& config) {
  if (m.whole("expert_count").value_or(0) > 0) {
    config["model_type"] = "mixtral";
    experts(m, config, "num_local_experts", "intermediate_size");
  } else {
    attention_bias(m, config);
  }
}

void qwen2(const Metadata&, Json&) {}

void qwen2_moe(const Metadata& m, Json& config) {
  experts(m, config, "num_experts", "moe_intermediate_size");
  config["shared_expert_intermediate_size"] =
      m.whole("expert_shared_feed_forward_length").value_or(m.required("feed_forward_length"));
}

void qwen3_moe(const Metadata& m, Json& config) {
  experts(m, config, "num_experts", "moe_intermediate_size");
}

void gemma(const Metadata& m, Json& config) {
  config["hidden_activation"] = "gelu_pytorch_tanh";
  copy(m, "attention.sliding_window", config, "sliding_window");
  if (m.has_number("attn_logit_softcapping")) config["attn_logit_softcapping"] = 1.0;
  if (m.has_number("final_logit_softcapping")) config["final_logit_softcapping"] = 1.0;
}

void phi3(const Metadata& m, Json& config) {
  copy(m, "attention.sliding_window", config, "sliding_window");
}

void gpt_oss(const Metadata& m, Json& config) {
  copy(m, "attention.sliding_window", config, "sliding_window");
  experts(m, config, "num_local_experts", "intermediate_size");
}

/// Newer files name the sizes of heads before the latent compression `…_mla`.
void deepseek(const Metadata& m, Json& config) {
  if (m.has_tensor(
          fmt::format("blk.{}.exp_probs_b.bias", m.whole("leading_dense_block_count").value_or(0))))
    config["model_type"] = "deepseek_v3";
  experts(m, config, "n_routed_experts", "moe_intermediate_size");
  const int64_t rope = m.required("rope.dimension_count");
  const int64_t key =
      m.whole("attention.key_length_mla").value_or(m.whole("attention.key_length").value_or(0));
  copy(m, "attention.q_lora_rank", config, "q_lora_rank");
  config["kv_lora_rank"] = m.required("attention.kv_lora_rank");
  config["qk_rope_head_dim"] = rope;
  config["qk_nope_head_dim"] = key - rope;
  config["v_head_dim"] =
      m.whole("attention.value_length_mla").value_or(m.whole("attention.value_length").value_or(0));
  config["num_key_value_heads"] = config["num_attention_heads"];
  config.erase("head_dim");
}

void glm4(const Metadata& m, Json& config) { attention_bias(m, config); }

void glm4_moe(const Metadata& m, Json& config) {
  attention_bias(m, config);
  experts(m, config, "n_routed_experts", "moe_intermediate_size");
  config["use_qk_norm"] = m.has_tensor("blk.0.attn_q_norm.weight");
  // Layers that only predict further tokens are stored behind the others.
  config["num_hidden_layers"] =
      m.required("block_count") - m.whole("nextn_predict_layers").value_or(0);
}

void minimax_m2(const Metadata& m, Json& config) {
  experts(m, config, "num_local_experts", "intermediate_size");
  config["use_qk_norm"] = m.has_tensor("blk.0.attn_q_norm.weight");
  config["use_routing_bias"] = m.has_tensor("blk.0.exp_probs_b.bias");
}

struct Architecture {
  std::string_view name;        ///< in `general.architecture`
  std::string_view model_type;  ///< of the config.json
  void (*read)(const Metadata&, Json&);
};

constexpr Architecture kArchitectures[] = {{"llama", "llama", llama},
                                           {"qwen2", "qwen2", qwen2},
                                           {"qwen2moe", "qwen2_moe", qwen2_moe},
                                           {"qwen3", "qwen3", qwen2},
                                           {"qwen3moe", "qwen3_moe", qwen3_moe},
                                           {"gemma2", "gemma2", gemma},
                                           {"gemma3", "gemma3_text", gemma},
                                           {"phi3", "phi3", phi3},
                                           {"gpt-oss", "gpt_oss", gpt_oss},
                                           {"deepseek2", "deepseek_v2", deepseek},
                                           {"glm4", "glm4", glm4},
                                           {"glm4moe", "glm4_moe", glm4_moe},
                                           {"minimax-m2", "minimax_m2", minimax_m2}};

const Architecture& gguf_architecture(const Metadata& m) {
  std::vector<std::string> names;
  for (const Architecture& known : kArchitectures) {
    if (known.name == m.architecture()) return known;
    names.emplace_back(known.name);
  }
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: 'general.architecture': unknown architecture '{}'{}; known: {}",
                          m.where(), shown_name(m.architecture()),
                          did_you_mean(m.architecture(), names), join(names, ", ")));
}

/// The fields that all architectures have.
Json common_fields(const Metadata& m) {
  Json config = {{"hidden_size", m.required("embedding_length")},
                 {"num_hidden_layers", m.required("block_count")},
                 {"intermediate_size", m.required("feed_forward_length")},
                 {"num_attention_heads", m.required("attention.head_count")},
                 {"max_position_embeddings", m.required("context_length")},
                 {"rms_norm_eps", 1e-6},
                 {"tie_word_embeddings", !m.has_tensor("output.weight")}};
  copy(m, "attention.head_count_kv", config, "num_key_value_heads");
  copy(m, "attention.key_length", config, "head_dim");
  const GgufTensor* table = m.tensor("token_embd.weight");
  if (table == nullptr || table->dims.size() != 2)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the tensor 'token_embd.weight' with 2 dimensions is missing; its "
                            "rows are the vocabulary",
                            m.where()));
  config["vocab_size"] = table->dims[1];
  return config;
}

/// A tensor's part of "blk.N.PART.weight", and the module's names behind "model.layers.N.".
struct Part {
  std::string_view tensor;
  std::vector<std::string_view> modules;
};

const std::vector<Part>& parts() {
  static const std::vector<Part> table = {
      {"attn_q", {"self_attn.q_proj"}},
      {"attn_k", {"self_attn.k_proj"}},
      {"attn_v", {"self_attn.v_proj"}},
      {"attn_qkv",
       {"self_attn.qkv_proj", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
      {"attn_output", {"self_attn.o_proj"}},
      {"attn_q_a", {"self_attn.q_a_proj"}},
      {"attn_q_b", {"self_attn.q_b_proj"}},
      {"attn_kv_a_mqa", {"self_attn.kv_a_proj_with_mqa"}},
      {"attn_kv_b", {"self_attn.kv_b_proj"}},
      {"ffn_gate", {"mlp.gate_proj"}},
      {"ffn_up", {"mlp.up_proj", "mlp.gate_up_proj"}},
      {"ffn_down", {"mlp.down_proj"}},
      {"ffn_up_exps", {"mlp.experts"}},
      {"ffn_gate_shexp", {"mlp.shared_experts.gate_proj"}},
      {"ffn_up_shexp", {"mlp.shared_experts.up_proj"}},
      {"ffn_down_shexp", {"mlp.shared_experts.down_proj"}}};
  return table;
}

}  // namespace

Json gguf_config(const GgufHeader& header, const std::string& where) {
  const Metadata m(header, where);
  const Architecture& architecture = gguf_architecture(m);
  Json config = common_fields(m);
  config["model_type"] = architecture.model_type;
  architecture.read(m, config);
  return config;
}

std::vector<std::string> gguf_modules(const std::string& tensor) {
  const std::vector<std::string> words = split(tensor, '.');
  // blk.N.PART.weight; older files have a tensor for each expert, blk.N.ffn_up.E.weight.
  constexpr size_t kWords = 4;
  const bool of_expert = words.size() == kWords + 1 && words[2] == "ffn_up" && words[3] == "0";
  if ((words.size() != kWords && !of_expert) || words[0] != "blk" || words.back() != "weight" ||
      words[1].empty() || words[1].find_first_not_of("0123456789") != std::string::npos)
    return {};
  const std::string part = of_expert ? "ffn_up_exps" : words[2];
  std::vector<std::string> modules;
  for (const Part& known : parts()) {
    if (known.tensor != part) continue;
    for (const std::string_view module : known.modules)
      modules.push_back(fmt::format("model.layers.{}.{}", words[1], module));
  }
  return modules;
}

}  // namespace tilecast
