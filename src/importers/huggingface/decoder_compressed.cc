// DeepSeek-V4: attention to the last tokens and to compressed keys, an output projection in groups,
// and hyper-connections. Source: transformers 5.23, modeling_deepseek_v4.py. The weights of the
// streams are computed by one product, their normalization (Sinkhorn) is part of the kernels that
// mix the streams.

#include <fmt/format.h>

#include <numeric>

#include "importers/huggingface/decoder_graph.h"
#include "importers/huggingface/decoder_reading.h"
#include "tilecast/error.h"

namespace tilecast {

/// One key for every `ratio` tokens, [b, s / ratio, size]; with `overlap` of two windows of tokens.
TensorId DecoderGraph::compress(TensorId x, const std::string& p, int64_t ratio, int64_t size) {
  const bool overlap = ratio <= kOverlapRatio;
  const int64_t width = overlap ? 2 * size : size;
  f_.weight(p + "position_bias", {ratio, width});
  const TensorId kv = f_.linear(x, p + "kv_proj", {width, false});
  const TensorId gate = f_.linear(x, p + "gate_proj", {width, false});
  return f_.rms_norm(
      f_.op("compress", {kv, gate}, p + "pool", {{"ratio", ratio}, {"columns", size}}),
      p + "kv_norm", true, c_.wide_norm_weight);
}

TensorId DecoderGraph::compressed_attention(TensorId x, size_t index) {
  const std::string p = fmt::format("layers.{}.{}.", index, c_.attention_part);
  const Layer& layer = layer_at(index);
  const DecoderConfig::Compressed& z = c_.compressed;
  const Layers::Split by_head = f_.outputs(1, {c_.heads});
  f_.weight(p + "sinks", {c_.heads}, 0, by_head);
  const TensorId q_latent = f_.rms_norm(f_.linear(x, p + "q_a_proj", {z.q_lora_rank, false}),
                                        p + "q_a_norm", true, c_.wide_norm_weight);
  const TensorId wide =
      f_.linear(q_latent, p + "q_b_proj",
                {c_.heads * c_.head_dim, false, f_.outputs(c_.head_dim, {c_.heads})});
  const TensorId q = f_.split_heads(
      f_.rms_norm(f_.view(wide, {request_.batch, request_.seq, c_.heads, c_.head_dim}),
                  p + "q_b_norm", false),
      c_.heads);
  const TensorId kv = f_.rms_norm(f_.linear(x, p + "kv_proj", {c_.head_dim, false}), p + "kv_norm",
                                  true, c_.wide_norm_weight);
  std::vector<TensorId> inputs = {q, kv};
  std::vector<Attribute> attributes = {{"window", layer.window}, {"ratio", layer.compression}};
  if (layer.compression > 0) {
    const std::string own = p + "compressor.";
    inputs.push_back(compress(x, own, layer.compression, c_.head_dim));
    if (layer.has_indexer) {
      const DecoderConfig::Indexer& i = c_.indexer;
      const TensorId keys = compress(x, own + "indexer.", layer.compression, i.head_dim);
      const TensorId queries =
          f_.linear(q_latent, own + "indexer.q_b_proj", {i.heads * i.head_dim, false});
      const TensorId weights = f_.linear(x, own + "indexer.weights_proj", {i.heads, false});
      f_.op("indexer", {queries, keys, weights}, own + "indexer.select",
            {{"heads", i.heads}, {"top_k", i.top_k}, {"ratio", layer.compression}});
      attributes.push_back({"top_k", i.top_k});
    }
  }
  const TensorId context =
      f_.op("compressed_attention", std::move(inputs), p + "attention", std::move(attributes));
  const int64_t group = c_.heads * c_.head_dim / z.output_groups;
  const TensorId weight = f_.weight(p + "o_a_proj.weight", {z.output_groups * z.output_rank, group},
                                    0, f_.outputs(z.output_rank, {z.output_groups}));
  const TensorId low =
      f_.op("grouped_linear", {context, weight}, p + "o_a_proj", {{"groups", z.output_groups}});
  return f_.linear(low, p + "o_b_proj",
                   {c_.hidden_dim, false, f_.inputs(z.output_rank, z.output_groups)});
}

/// The weights of the streams before and after a block, and of each stream for each.
TensorId DecoderGraph::stream_weights(TensorId streams, const std::string& p, int64_t count) {
  f_.weight(p + "base", {count});
  f_.weight(p + "scale", {count > c_.compressed.streams ? int64_t{3} : int64_t{1}});
  return f_.linear(f_.rms_norm(streams, p + "input_norm", false), p + "fn", {count, false});
}

TensorId DecoderGraph::stream_layer(TensorId x, size_t index) {
  const std::string p = fmt::format("layers.{}.", index);
  const int64_t n = c_.compressed.streams;
  const auto block = [&](const std::string& name, const auto& inner) {
    const TensorId weights = stream_weights(x, p + name, (2 + n) * n);
    const TensorId input =
        f_.op("merge_streams", {x, weights}, p + name + "merge", {{"streams", n}});
    x = f_.op("update_streams", {x, inner(input), weights}, p + name + "update", {{"streams", n}});
  };
  block("attn_hc.",
        [&](TensorId input) { return mixer(norm(input, p + "input_layernorm"), index); });
  block("ffn_hc.", [&](TensorId input) {
    return ffn(norm(input, p + "post_attention_layernorm"), input, index);
  });
  return x;
}

TensorId DecoderGraph::merge_streams(TensorId x) {
  const int64_t n = c_.compressed.streams;
  return f_.op("merge_streams", {x, stream_weights(x, "hc_head.", n)}, "hc_head.merge",
               {{"streams", n}});
}

/// `compress_ratios` (published configs) gives each layer's tokens per compressed key, 0: none;
/// `layer_types` (transformers) names them.
static std::vector<int64_t> read_ratios(const JsonObject& c, const DecoderConfig& config) {
  std::vector<int64_t> ratios;
  const size_t count = config.layers.size();
  const std::vector<std::string> names = {"sliding_attention", "compressed_sparse_attention",
                                          "heavily_compressed_attention"};
  if (!c.has("compress_ratios")) {
    const std::vector<std::string> types = layer_words(c, config, "layer_types", names);
    if (types.empty())
      c.fail("compress_ratios", "is missing; expected a list of numbers, one for each layer");
    const JsonObject rates =
        c.has("compress_rates") ? c.object("compress_rates") : JsonObject(c.json(), c.where());
    const auto rate = [&](const std::string& key, int64_t fallback) {
      return rates.optional_integer({key}, 1, kLargestConfigSize).value_or(fallback);
    };
    for (const std::string& type : types)
      ratios.push_back(type == names[0] ? 0 : rate(type, type == names[1] ? 4 : 128));
    return ratios;
  }
  const Json& list = c.json()["compress_ratios"];
  // Published lists have entries for the layers that predict further tokens too.
  if (!list.is_array() || list.size() < count)
    c.fail("compress_ratios",
           fmt::format("expected a list of numbers, one for each of {} layers", count));
  for (size_t i = 0; i < count; ++i) {
    const std::optional<int64_t> ratio = whole_number(list[i], 0, kLargestConfigSize);
    if (!ratio) c.fail("compress_ratios", "expected whole numbers of tokens, 0 for none");
    ratios.push_back(*ratio);
  }
  return ratios;
}

void deepseek_v4(const JsonObject& c, DecoderConfig& config) {
  const auto size = [&](const char* key) { return c.integer({key}, 1, kLargestConfigSize); };
  config.compressed = {.streams = c.integer({"hc_mult"}, 1, 64),
                       .output_groups = size("o_groups"),
                       .output_rank = size("o_lora_rank"),
                       .q_lora_rank = size("q_lora_rank")};
  if (config.heads % config.compressed.output_groups != 0)
    c.fail("o_groups", fmt::format("{} does not divide the {} attention heads",
                                   config.compressed.output_groups, config.heads));
  config.kv_heads = 1;
  config.indexer = {.heads = size("index_n_heads"),
                    .head_dim = size("index_head_dim"),
                    .top_k = size("index_topk")};
  const std::vector<int64_t> ratios = read_ratios(c, config);
  read_experts(c, config, {"n_routed_experts"}, "moe_intermediate_size");
  read_shared_experts(c, config);
  for (size_t i = 0; i < ratios.size(); ++i) {
    DecoderConfig::Layer& layer = config.layers[i];
    layer.mixer = DecoderConfig::Mixer::kCompressed;
    layer.window = size("sliding_window");
    layer.compression = ratios[i];
    layer.has_indexer = ratios[i] > 0 && ratios[i] <= kOverlapRatio;
  }
}

}  // namespace tilecast
