// DeBERTa V2's attention (transformers/models/deberta_v2/modeling_deberta_v2.py).

#include "importers/huggingface/encoder.h"

namespace tilecast {
namespace {

/// [b, n, heads · d] → [b · heads, n, d], one copy.
TensorId flat_heads(Layers& f, TensorId x, int64_t heads, const std::string& name) {
  const Shape s = f.builder().graph().tensor(x).shape;
  const TensorId split = f.transpose(f.view(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
  return f.view(f.op("copy", {split}, name), {s[0] * heads, s[1], s[2] / heads});
}

class ContentAndPosition {
 public:
  ContentAndPosition(Layers& f, const EncoderConfig& c, const RelativePositions& positions,
                     const std::string& prefix)
      : f_(f), c_(c), d_(*c.disentangled), r_(positions), p_(prefix) {}

  TensorId run(TensorId x) {
    const int64_t batch = f_.request().batch, s = f_.request().seq;
    const Projection query = projection("query_proj"), key = projection("key_proj");
    q_ = project(x, query, "query_proj");
    k_ = project(x, key, "key_proj");
    const TensorId v = project(x, projection("value_proj"), "value_proj");
    const TensorId turned = f_.transpose(k_, {0, 2, 1});
    TensorId scores =
        f_.op("matmul", {q_, f_.op("div_scalar", {turned}, p_ + "scale")}, p_ + "scores");
    if (d_.span > 0 && (d_.content_to_position || d_.position_to_content))
      scores = f_.op("add", {scores, position_scores(query, key)}, p_ + "add_positions");
    scores = f_.view(scores, {batch, c_.heads, s, s});
    const TensorId seen = f_.op("cast", {r_.mask}, p_ + "mask", {{"dtype", DType::kBool}});
    const TensorId hidden = f_.op("compare", {seen}, p_ + "mask");
    const TensorId masked = f_.op("where", {hidden, scores}, p_ + "mask");
    const TensorId weights = f_.dropout(f_.op("softmax", {masked}, p_ + "softmax"), p_ + "dropout",
                                        c_.attention_dropout);
    const TensorId context =
        f_.op("matmul", {f_.view(weights, {batch * c_.heads, s, s}), v}, p_ + "context");
    const TensorId heads = f_.view(context, {batch, c_.heads, s, c_.hidden_dim / c_.heads});
    const TensorId merged = f_.op("copy", {f_.transpose(heads, {0, 2, 1, 3})}, p_ + "merge");
    return f_.view(merged, {batch, s, c_.hidden_dim});
  }

 private:
  struct Projection {
    TensorId weight, bias;
  };

  Projection projection(const std::string& name) {
    return {f_.weight(p_ + name + ".weight", {c_.hidden_dim, c_.hidden_dim}),
            f_.weight(p_ + name + ".bias", {c_.hidden_dim})};
  }

  TensorId project(TensorId x, const Projection& by, const std::string& name) {
    const TensorId y = f_.op("linear", {x, by.weight, by.bias}, p_ + name);
    return flat_heads(f_, y, c_.heads, p_ + name);
  }

  /// The projected relative positions, repeated for each sequence: [b · heads, 2 span, d].
  TensorId project_positions(TensorId table, const Projection& by, const std::string& name) {
    const TensorId one = project(table, by, name);
    const int64_t batch = f_.request().batch;
    const Shape s = f_.builder().graph().tensor(one).shape;
    if (batch == 1) return one;
    const TensorId wide = f_.op("expand", {f_.view(one, {1, s[0], s[1], s[2]})}, p_ + name,
                                {{"shape", Shape{batch, s[0], s[1], s[2]}}});
    return f_.view(f_.op("copy", {wide}, p_ + name), {batch * s[0], s[1], s[2]});
  }

  /// One score for each query-key pair, from scores of `content` to all relative positions.
  TensorId selected(TensorId content, TensorId positions, const std::string& name) {
    const TensorId all = f_.op("matmul", {content, f_.transpose(positions, {0, 2, 1})}, p_ + name);
    TensorId index = f_.op("add_scalar", {r_.index}, p_ + name + "_index");
    index = f_.op("maximum_scalar", {index}, p_ + name + "_index");  // clamp
    return f_.op("gather", {all, index}, p_ + name);
  }

  TensorId position_scores(const Projection& query, const Projection& key) {
    const TensorId table = f_.dropout(r_.table, p_ + "pos_dropout", c_.dropout);
    TensorId sum = -1;
    std::vector<TensorId> held = {q_, k_};
    if (d_.content_to_position) {
      const Projection by = d_.shared_projections ? key : projection("pos_key_proj");
      const TensorId keys = project_positions(table, by, "pos_key_proj");
      const TensorId scores = selected(q_, keys, "content_to_position");
      held.insert(held.end(), {keys, scores});
      const TensorId scaled = f_.op("div_scalar", {scores}, p_ + "content_to_position");
      sum = f_.op("add_scalar", {scaled}, p_ + "content_to_position");
    }
    if (d_.position_to_content) {
      const Projection by = d_.shared_projections ? query : projection("pos_query_proj");
      const TensorId queries = project_positions(table, by, "pos_query_proj");
      const TensorId scores = selected(k_, queries, "position_to_content");
      held.push_back(queries);
      TensorId scaled =
          f_.op("div_scalar", {f_.transpose(scores, {0, 2, 1})}, p_ + "position_to_content");
      // Variables hold all of it until then; the sum is added in place.
      held.insert(held.begin(), scaled);
      scaled = f_.op("keep", held, p_ + "position_to_content");
      sum = sum < 0 ? scaled : f_.op("add", {sum, scaled}, p_ + "position_to_content");
    }
    return sum;
  }

  Layers& f_;
  const EncoderConfig& c_;
  const Disentangled& d_;
  const RelativePositions& r_;
  const std::string& p_;
  TensorId q_ = -1, k_ = -1;
};

/// The logarithmic bucket of each distance (make_log_bucket_position), [1, s, s].
TensorId log_buckets(Layers& f) {
  const std::string name = "encoder.relative_pos";
  const int64_t s = f.request().seq;
  const TensorId queries = f.builder().input("query_ids", {1, s, 1}, DType::kInt64);
  const TensorId keys = f.builder().input("key_ids", {1, 1, s}, DType::kInt64);
  const TensorId distance = f.op("sub", {queries, keys}, name);
  const TensorId sign = f.op("add_scalar", {distance}, name);
  const TensorId near = f.op("compare", {distance}, name);
  const TensorId size = f.op("where", {near, f.op("maximum_scalar", {distance}, name)}, name);
  TensorId far = f.op("cast", {size}, name, {{"dtype", DType::kFp32}});
  // ceil(log(size / mid) / log((max - 1) / mid) · (mid - 1)) + mid
  for (const char* step : {"div_scalar", "log", "div_scalar", "mul_scalar", "add_scalar"})
    far = f.op(step, {far}, name);
  const TensorId whole = f.op("cast", {far}, name, {{"dtype", DType::kInt64}});
  return f.op("where", {near, distance, f.op("mul", {whole, sign}, name)}, name);
}

}  // namespace

RelativePositions relative_positions(Layers& f, const EncoderConfig& c) {
  const Disentangled& d = *c.disentangled;
  const int64_t batch = f.request().batch, s = f.request().seq;
  RelativePositions r;
  const TensorId columns = f.builder().input("attention_mask", {batch, 1, 1, s}, DType::kInt64);
  r.mask = f.op("mul", {columns, f.view(columns, {batch, 1, s, 1})}, "attention_mask");
  if (d.span == 0) return r;
  TensorId table = f.weight("encoder.rel_embeddings.weight", {2 * d.span, c.hidden_dim});
  if (d.norm) table = f.layer_norm(table, "encoder.LayerNorm");
  r.table = f.view(table, {1, 2 * d.span, c.hidden_dim});
  r.index = log_buckets(f);
  return r;
}

TensorId disentangled_attention(Layers& f, const EncoderConfig& c, TensorId x,
                                const RelativePositions& positions, const std::string& prefix) {
  return ContentAndPosition(f, c, positions, prefix).run(x);
}

TensorId conv_beside_layer(Layers& f, const EncoderConfig& c, TensorId embeddings,
                           TensorId output) {
  const Disentangled& d = *c.disentangled;
  const int64_t batch = f.request().batch, s = f.request().seq;
  const std::string p = "encoder.conv.";
  const TensorId columns = f.op("copy", {f.transpose(embeddings, {0, 2, 1})}, p + "permute");
  const TensorId weight =
      f.weight(p + "conv.weight", {c.hidden_dim, c.hidden_dim / d.conv_groups, 1, d.conv_window});
  const TensorId y = f.op("conv2d",
                          {f.view(columns, {batch, c.hidden_dim, 1, s}), weight,
                           f.weight(p + "conv.bias", {c.hidden_dim})},
                          p + "conv", {{"padding", d.conv_window / 2}, {"groups", d.conv_groups}});
  const TensorId rows =
      f.op("copy", {f.transpose(f.view(y, {batch, c.hidden_dim, s}), {0, 2, 1})}, p + "permute");
  const TensorId seen = f.builder().input("input_mask", {batch, s, 1}, f.request().dtype);
  const TensorId hidden = f.op("cast", {seen}, p + "mask", {{"dtype", DType::kBool}});
  const TensorId active =
      f.activation(f.dropout(f.op("where", {hidden, rows}, p + "mask"), p + "dropout", c.dropout),
                   d.conv_activation, p + "act");
  const TensorId normal =
      f.layer_norm(f.residual({output, active}, p + "residual"), p + "LayerNorm");
  return f.op("mul", {normal, seen}, p + "mask");
}

}  // namespace tilecast
