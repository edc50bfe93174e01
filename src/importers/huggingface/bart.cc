// BART and its relatives: encoder and decoder with absolute positions
// (transformers/models/bart, mbart, plbart, marian, pegasus, m2m_100, blenderbot,
// blenderbot_small). They differ in the place of the norms and in the positions.

#include "importers/huggingface/bart.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "importers/huggingface/family.h"
#include "importers/huggingface/fields.h"
#include "importers/huggingface/layers.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

enum class BartPositions : uint8_t {
  kLearned,        ///< a table with a row for each position
  kLearnedOffset,  ///< as above, and two unused rows
  kStored,         ///< sines in a table that is a parameter, which is not trained
  kComputed        ///< sines in a buffer
};

/// Differences between the families.
struct Variant {
  std::string_view model_type, architecture, doc;
  bool norm_first;      ///< norms before attention and MLP, and one after the last layer
  bool embedding_norm;  ///< a norm of the embeddings
  BartPositions positions;
  bool logits_bias;  ///< a buffer that is added to the logits
};

constexpr Variant kVariants[] = {
    {"bart", "Bart", "BART", false, true, BartPositions::kLearnedOffset, true},
    {"plbart", "PLBart", "PLBART", false, true, BartPositions::kLearnedOffset, true},
    {"mbart", "MBart", "mBART", true, true, BartPositions::kLearnedOffset, true},
    {"marian", "Marian", "Marian translation models", false, false, BartPositions::kStored, true},
    {"pegasus", "Pegasus", "Pegasus", true, false, BartPositions::kStored, true},
    {"m2m_100", "M2M100", "M2M-100 and NLLB", true, false, BartPositions::kComputed, false},
    {"blenderbot", "Blenderbot", "Blenderbot", true, false, BartPositions::kLearned, true},
    {"blenderbot-small", "BlenderbotSmall", "Blenderbot small", false, true,
     BartPositions::kLearned, true}};

struct Stack {
  int64_t layers, heads, ffn_dim;
};

struct BartConfig {
  const Variant* variant;
  int64_t hidden_dim, vocab_size, decoder_vocab_size, max_positions;
  Stack encoder, decoder;
  std::string activation;
  bool scale_embedding, shared_table, attention_dropout, dropout;
  bool vocabulary_head;
  int64_t labels;  ///< classes of a classifier; 0: none
};

Stack read_stack(const JsonObject& c, const std::string& name, int64_t hidden_dim) {
  Stack s{};
  s.layers = c.integer({name + "_layers"}, 1, 100000);
  s.heads = c.integer({name + "_attention_heads"}, 1, kLargestConfigSize);
  head_dim_of(c, "d_model", hidden_dim, name + "_attention_heads", s.heads);
  s.ffn_dim = c.integer({name + "_ffn_dim"}, 1, kLargestConfigSize);
  return s;
}

void read_head(const JsonObject& c, BartConfig& config) {
  const std::string name = class_name(c, "");
  if (name.ends_with("ForCausalLM") || name.ends_with("Encoder") || name.ends_with("Decoder"))
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: 'architectures': '{}' is one half of the model; only models with "
                            "encoder and decoder are supported",
                            c.where(), shown_name(name)));
  const bool classes = name.ends_with("ForSequenceClassification");
  // The class without a head is named like the family, "BartModel"; "MarianMTModel" has one.
  const bool bare = name == std::string(config.variant->architecture) + "Model";
  config.vocabulary_head = !classes && !bare;
  config.labels = classes ? label_count(c) : 0;
}

BartConfig bart_config(const JsonObject& c) {
  BartConfig config{};
  const std::string type = c.string("model_type");
  config.variant = std::find_if(std::begin(kVariants), std::end(kVariants),
                                [&](const Variant& v) { return v.model_type == type; });
  config.hidden_dim = c.integer({"d_model"}, 1, kLargestConfigSize);
  config.vocab_size = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  config.decoder_vocab_size =
      c.optional_integer({"decoder_vocab_size"}, 1, kLargestConfigSize).value_or(config.vocab_size);
  config.max_positions = c.integer({"max_position_embeddings"}, 1, kLargestConfigSize);
  config.encoder = read_stack(c, "encoder", config.hidden_dim);
  config.decoder = read_stack(c, "decoder", config.hidden_dim);
  config.activation = c.optional_string({"activation_function"}).value_or("gelu");
  check_activation(c, "activation_function", config.activation);
  config.scale_embedding = c.boolean("scale_embedding", false);
  config.shared_table = c.boolean("share_encoder_decoder_embeddings", true);
  if (config.shared_table && config.decoder_vocab_size != config.vocab_size)
    c.fail("decoder_vocab_size", fmt::format("expected {}, as in 'vocab_size', because "
                                             "'share_encoder_decoder_embeddings' is true; found {}",
                                             config.vocab_size, config.decoder_vocab_size));
  config.attention_dropout = drops(c, "attention_dropout", 0);
  config.dropout = drops(c, "dropout", 0.1);
  read_head(c, config);
  return config;
}

class Bart {
 public:
  Bart(Graph& graph, const BartConfig& config, const GraphRequest& request)
      : graph_(graph), f_(graph, request), c_(config) {}

  void build() {
    GraphBuilder& b = f_.builder();
    b.begin_segment("encoder.embeddings", 1);
    const TensorId table = f_.vocabulary_table("shared.weight", c_.vocab_size, c_.hidden_dim);
    TensorId x = embed(table, "encoder");
    b.begin_segment("encoder.layers", c_.encoder.layers);
    const TensorId first = x;
    x = attend(x, x, "encoder.layers.0.self_attn", c_.encoder.heads, -1);
    x = feed(x, "encoder.layers.0.", c_.encoder.ffn_dim);
    b.carry(first, x);
    b.begin_segment("decoder.embeddings", 1);
    const TensorId memory = c_.variant->norm_first ? f_.layer_norm(x, "encoder.layer_norm") : x;
    const TensorId decoder_table = c_.shared_table
                                       ? table
                                       : f_.vocabulary_table("decoder.embed_tokens.weight",
                                                             c_.decoder_vocab_size, c_.hidden_dim);
    const TensorId start = embed(decoder_table, "decoder");
    const TensorId mask = f_.causal_mask(start, "decoder.causal_mask");
    b.begin_segment("decoder.layers", c_.decoder.layers);
    x = attend(start, start, "decoder.layers.0.self_attn", c_.decoder.heads, mask);
    x = attend(x, memory, "decoder.layers.0.encoder_attn", c_.decoder.heads, -1);
    x = feed(x, "decoder.layers.0.", c_.decoder.ffn_dim);
    b.carry(start, x);
    b.begin_segment("head", 1);
    if (c_.variant->norm_first) x = f_.layer_norm(x, "decoder.layer_norm");
    // The outputs of both stacks are in the model's output.
    graph_.outputs = {f_.op("keep", {head(x, decoder_table), x, memory}, "head")};
  }

 private:
  int64_t tokens_of(const std::string& stack) const {
    return stack == "encoder" ? f_.request().seq : f_.request().decoder_tokens();
  }

  TensorId positions(const std::string& stack) {
    const std::string name = stack + ".embed_positions";
    const int64_t s = tokens_of(stack);
    if (c_.variant->positions == BartPositions::kComputed)
      return f_.op("view",
                   {f_.builder().tensor({.name = name,
                                         .shape = {s, c_.hidden_dim},
                                         .dtype = f_.request().dtype,
                                         .kind = TensorKind::kBuffer,
                                         .segment = f_.builder().current_segment()})},
                   name, {{"shape", Shape{1, s, c_.hidden_dim}}});
    const int64_t unused = c_.variant->positions == BartPositions::kLearnedOffset ? 2 : 0;
    const TensorId table = f_.weight(name + ".weight", {c_.max_positions + unused, c_.hidden_dim});
    graph_.tensor(table).frozen = c_.variant->positions == BartPositions::kStored;
    return f_.embedding(table, f_.ids(stack + ".position_ids", {1, s}), name);
  }

  TensorId embed(TensorId table, const std::string& stack) {
    const Shape ids = {f_.request().batch, tokens_of(stack)};
    TensorId x = f_.embedding(table, f_.ids(stack + ".input_ids", ids), stack + ".embed_tokens");
    if (c_.scale_embedding) x = f_.op("mul_scalar", {x}, stack + ".embed_scale");
    x = f_.op("add", {x, positions(stack)}, stack + ".add_positions");
    if (c_.variant->embedding_norm) x = f_.layer_norm(x, stack + ".layernorm_embedding");
    return f_.dropout(x, stack + ".dropout", c_.dropout);
  }

  /// Attention of x to `to` (x itself: self-attention), with its norm and residual. Causal with a
  /// mask.
  TensorId attend(TensorId x, TensorId to, const std::string& name, int64_t heads, TensorId mask) {
    const std::string p = name + ".";
    const int64_t head_dim = c_.hidden_dim / heads;
    const TensorId in = c_.variant->norm_first ? f_.layer_norm(x, name + "_layer_norm") : x;
    const TensorId source = to == x ? in : to;
    const auto project = [&](TensorId from, const char* part) {
      const Layers::Linear options = {c_.hidden_dim, true, f_.outputs(head_dim, {heads})};
      return f_.split_heads(f_.linear(from, p + part, options), heads);
    };
    const TensorId q = project(in, "q_proj"), k = project(source, "k_proj"),
                   v = project(source, "v_proj");
    std::vector<Attribute> attributes;
    std::vector<TensorId> masks;
    if (c_.attention_dropout) attributes.push_back({"dropout", 1});
    if (mask >= 0) {
      attributes.push_back({"causal", 1});
      masks.push_back(mask);
    }
    const TensorId context =
        f_.attention(q, k, v, p + "attention", std::move(attributes), std::move(masks));
    const TensorId out = f_.dropout(
        f_.linear(context, p + "out_proj", {c_.hidden_dim, true, f_.inputs(head_dim, heads)}),
        p + "dropout", c_.dropout);
    const TensorId sum = f_.residual({x, out}, p + "residual");
    return c_.variant->norm_first ? sum : f_.layer_norm(sum, name + "_layer_norm");
  }

  TensorId feed(TensorId x, const std::string& p, int64_t ffn_dim) {
    const std::string norm = p + "final_layer_norm";
    const TensorId in = c_.variant->norm_first ? f_.layer_norm(x, norm) : x;
    const TensorId out = f_.dropout(f_.feed_forward(in, {.up = p + "fc1",
                                                         .act = p + "act",
                                                         .down = p + "fc2",
                                                         .activation = c_.activation,
                                                         .ffn_dim = ffn_dim}),
                                    p + "dropout", c_.dropout);
    const TensorId sum = f_.residual({x, out}, p + "residual");
    return c_.variant->norm_first ? sum : f_.layer_norm(sum, norm);
  }

  TensorId head(TensorId x, TensorId table) {
    if (c_.labels > 0) {  // on the last token of each sequence
      const TensorId last = f_.op("gather_rows", {x}, "last_token", {{"rows", f_.request().batch}});
      const TensorId dense = f_.linear(last, "classification_head.dense", {c_.hidden_dim});
      return f_.linear(f_.op("tanh", {dense}, "classification_head.act"),
                       "classification_head.out_proj", {c_.labels});
    }
    if (!c_.vocabulary_head) return x;
    const TensorId logits = f_.tied_output(x, table);
    if (!c_.variant->logits_bias) return logits;
    const TensorId bias = f_.builder().tensor({.name = "final_logits_bias",
                                               .shape = {1, c_.decoder_vocab_size},
                                               .dtype = f_.request().dtype,
                                               .kind = TensorKind::kBuffer,
                                               .segment = f_.builder().current_segment()});
    graph_.splits.push_back({.weight = bias, .dim = 1, .parts = {c_.decoder_vocab_size}});
    return f_.op("add", {logits, bias}, "final_logits_bias");
  }

  Graph& graph_;
  Layers f_;
  const BartConfig& c_;
};

Graph build_bart(const BartConfig& config, const GraphRequest& request) {
  Graph graph;
  Bart(graph, config, request).build();
  return graph;
}

Model read_bart(const JsonObject& json) {
  const BartConfig config = bart_config(json);
  Model model = make_model(config, std::min<int64_t>(512, config.max_positions),
                           config.max_positions, build_bart);
  model.has_fused_attention = true;
  model.has_two_lengths = true;
  return model;
}

}  // namespace

std::vector<FamilyDef> bart_families() {
  std::vector<FamilyDef> families;
  for (const Variant& v : kVariants)
    families.push_back({v.model_type, v.architecture, v.doc, read_bart});
  return families;
}

}  // namespace tilecast
