#include "tuning/translator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/embedded.h"
#include "tilecast/error.h"
#include "tuning/transformer.h"

namespace tilecast::tuning {
namespace {

constexpr size_t kFieldFeatures = 24;
constexpr size_t kMostFields = 64;
constexpr float kTranslatorDeviations = 4;
constexpr int64_t kWidestTranslator = 1024;

/// Features of one size: magnitude, divisibility, and the small values one by one; the same numbers
/// as field_features of tools/tuner/translator.py.
std::array<float, kFieldFeatures> field_features(int64_t size) {
  std::array<float, kFieldFeatures> x{};
  size_t at = 0;
  const auto add = [&](double value) {
    x[at++] = std::clamp(static_cast<float>(value), -kTranslatorDeviations, kTranslatorDeviations);
  };
  const auto value = static_cast<double>(size);
  const double log = std::log2(std::max(value, 0.5));
  add(log / 8);
  add(log - std::floor(log));
  add(size == 0 ? 1 : 0);
  add(size == 1 ? 1 : 0);
  for (int j = 1; j <= 8; ++j) add(size % (int64_t{1} << j) == 0 ? 1 : 0);
  for (const int64_t prime : {3, 5, 7}) add(size % prime == 0 ? 1 : 0);
  for (const double tile : {4, 16, 64, 256})
    add(std::ceil(value / tile) * tile / std::max(value, 1.0) - 1);
  for (const int64_t small : {2, 3, 4, 7, 14}) add(size == small ? 1 : 0);
  return x;
}

Translator embedded_translator(const std::string& name) {
  const std::vector<EmbeddedFile> files = embedded_files("weights/" + name);
  if (files.empty())
    throw Error(ErrorKind::kInternal, fmt::format("this build has no data/weights/{}", name));
  return Translator::parse(files.front().content, "data/weights/" + name, Checksum::kTrust);
}

}  // namespace

SourceText source_text(const ConvProblem& p, const TunedChip& chip) {
  // Channels in and out are swapped for the gradients: as the kernel reads and writes.
  const bool forward = p.pass == ConvPass::kForward;
  const int64_t pixels = p.oh * p.ow;
  const auto features = features_of(p, chip).x;
  return {{p.n, forward ? p.c : p.k, forward ? p.k : p.c, p.oh, p.ow, pixels, p.n * pixels, p.r,
           p.s, p.pad_h, p.stride_h, p.dil_h, p.group},
          {features.begin(), features.end()}};
}

/// The matrices by what they are for.
struct TranslatorLayers {
  Tensor range, field, field_bias, solver, chip, token, position;
  Linear overall, out;
  Norm memory_norm, norm;
  std::vector<AttentionBlock> reads;  ///< the encoder's
  std::vector<InnerBlock> reads_inner;
  std::vector<AttentionBlock> self, cross;  ///< the decoder's
  std::vector<InnerBlock> inner;
};

Translator Translator::parse(std::string_view content, const std::string& where,
                             Checksum checksum) {
  const WeightsContainer container = read_container(content, where, checksum);
  const JsonObject header(container.header, where);
  if (header.string("kind") != "parameters")
    unusable_weights(where, "it is no model of tuning parameters");
  Translator t;
  const auto size = [&](const std::string& key, int64_t most) {
    return static_cast<size_t>(header.integer({key}, 1, most));
  };
  t.width_ = size("width", kWidestTranslator);
  t.heads_ = size("heads", 64);
  t.inner_ = size("inner", kWidestTranslator);
  t.encoders_ = size("encoders", 16);
  t.decoders_ = size("decoders", 16);
  t.most_tokens_ = size("most_tokens", 64);
  if (t.width_ % t.heads_ != 0) unusable_weights(where, "heads do not divide the width");
  t.solvers_ = header.strings("solvers");
  for (const Json& value : header.json().at("values")) t.values_.push_back(value.get<int64_t>());
  for (const Json& item : header.json().at("chips")) {
    const JsonObject chip(item, where + ": chips");
    t.chips_.push_back({chip.string("name"), chip.number("units"), chip.number("clock"),
                        chip.number("bandwidth"), chip.number("matrix") != 0});
  }
  if (t.solvers_.empty() || t.values_.empty() || t.chips_.empty())
    unusable_weights(where, "it has no solvers, values or chips");
  t.tensors_ = std::make_shared<const Tensors>(container, where);
  const Tensors& all = *t.tensors_;
  const size_t w = t.width_, solvers = t.solvers_.size(), values = t.values_.size();
  auto layers = std::make_shared<TranslatorLayers>();
  t.fields_ = header.strings("fields").size();
  t.features_ = size("features", kWidestTranslator);
  if (t.fields_ == 0 || t.fields_ > kMostFields)
    unusable_weights(where, fmt::format("{} fields; expected 1 to {}", t.fields_, kMostFields));
  layers->range = all.get("range", 4, t.features_);
  layers->field = all.get("field", t.fields_ * kFieldFeatures, w);
  layers->field_bias = all.get("field_bias", t.fields_, w);
  layers->solver = all.get("solver.weight", solvers, w);
  layers->chip = all.get("chip.weight", t.chips_.size(), w);
  layers->token = all.get("token.weight", values + 1, w);
  layers->position = all.get("position", solvers * t.most_tokens_, w);
  layers->overall = {all, "overall", t.features_, w};
  layers->out = {all, "out", w, values};
  layers->memory_norm = {all, "memory_norm", w};
  layers->norm = {all, "norm", w};
  for (size_t i = 0; i < t.encoders_; ++i) {
    layers->reads.emplace_back(all, fmt::format("encoder.{}", 2 * i), w, t.heads_);
    layers->reads_inner.emplace_back(all, fmt::format("encoder.{}", 2 * i + 1), w, t.inner_);
  }
  for (size_t i = 0; i < t.decoders_; ++i) {
    layers->self.emplace_back(all, fmt::format("decoder.{}", 3 * i), w, t.heads_);
    layers->cross.emplace_back(all, fmt::format("decoder.{}", 3 * i + 1), w, t.heads_);
    layers->inner.emplace_back(all, fmt::format("decoder.{}", 3 * i + 2), w, t.inner_);
  }
  t.layers_ = std::move(layers);
  return t;
}

const Translator& Translator::bundled() {
  static const Translator translator = embedded_translator("parameters.weights");
  return translator;
}

const Translator& Translator::tensile() {
  static const Translator translator = embedded_translator("tensile.weights");
  return translator;
}

std::optional<size_t> Translator::solver(std::string_view name) const {
  const auto it = std::find(solvers_.begin(), solvers_.end(), name);
  if (it == solvers_.end()) return std::nullopt;
  return it - solvers_.begin();
}

size_t Translator::chip_of(const TunedChip& chip) const {
  // Distance of the logarithms; a chip with another kind of unit is further away than all others.
  const auto distance = [&](const MeasuredChip& other) {
    return (chip.matrix_unit == other.matrix_unit ? 0 : 1e3) +
           std::abs(std::log(chip.units / other.units)) +
           std::abs(std::log(chip.clock_ghz / other.clock_ghz)) +
           std::abs(std::log(chip.gbytes_per_s / other.gbytes_per_s));
  };
  const auto nearest =
      std::min_element(chips_.begin(), chips_.end(),
                       [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  return static_cast<size_t>(nearest - chips_.begin());
}

Translator::Source Translator::read(const SourceText& text, const TunedChip& chip,
                                    size_t solver) const {
  TILECAST_CHECK(text.sizes.size() == fields_ && text.features.size() == features_);
  const TranslatorLayers& l = *layers_;
  const size_t w = width_, count = fields_ + 3;
  std::vector<float> x(count * w), normed(w);
  const auto token = [&](size_t t) { return std::span(x).subspan(t * w, w); };
  for (size_t f = 0; f < fields_; ++f) {
    std::copy_n(l.field_bias.data() + f * w, w, token(f).begin());
    const auto features = field_features(text.sizes[f]);
    for (size_t i = 0; i < kFieldFeatures; ++i)
      for (size_t j = 0; j < w; ++j)
        token(f)[j] += features[i] * l.field.values[(f * kFieldFeatures + i) * w + j];
  }
  std::vector<float> overall = text.features;
  const float* const range = l.range.data();  // [least, most, mean, 1 / spread][feature]
  for (size_t i = 0; i < features_; ++i) {
    const float clamped = std::clamp(overall[i], range[i], range[features_ + i]);
    overall[i] = std::clamp((clamped - range[2 * features_ + i]) * range[3 * features_ + i],
                            -kTranslatorDeviations, kTranslatorDeviations);
  }
  l.overall.apply(overall, token(fields_));
  std::copy_n(l.solver.data() + solver * w, w, token(fields_ + 1).begin());
  std::copy_n(l.chip.data() + chip_of(chip) * w, w, token(fields_ + 2).begin());
  std::vector<float> keys(count * w), values(count * w), all_normed(count * w);
  for (size_t layer = 0; layer < encoders_; ++layer) {
    const AttentionBlock& block = l.reads[layer];
    for (size_t t = 0; t < count; ++t) {
      const auto y = std::span(all_normed).subspan(t * w, w);
      block.norm.apply(token(t), y);
      block.k.apply(y, std::span(keys).subspan(t * w, w));
      block.v.apply(y, std::span(values).subspan(t * w, w));
    }
    for (size_t t = 0; t < count; ++t)
      block.attend(token(t), std::span(all_normed).subspan(t * w, w), keys, values);
    for (size_t t = 0; t < count; ++t) l.reads_inner[layer].apply(token(t));
  }
  Source source{solver, count, {}, {}};
  for (const AttentionBlock& block : l.cross) {
    auto& k = source.keys.emplace_back(count * w);
    auto& v = source.values.emplace_back(count * w);
    for (size_t t = 0; t < count; ++t) {
      l.memory_norm.apply(token(t), normed);
      block.k.apply(normed, std::span(k).subspan(t * w, w));
      block.v.apply(normed, std::span(v).subspan(t * w, w));
    }
  }
  return source;
}

Translator::Prefix Translator::start() const {
  Prefix prefix;
  prefix.keys.resize(decoders_);
  prefix.values.resize(decoders_);
  return prefix;
}

std::vector<float> Translator::next(const Source& source, Prefix& prefix, size_t token) const {
  const TranslatorLayers& l = *layers_;
  const size_t w = width_;
  std::vector<float> x(w), normed(w);
  const float* const place = l.position.data() + (source.solver * most_tokens_ + prefix.length) * w;
  for (size_t i = 0; i < w; ++i) x[i] = l.token.values[token * w + i] + place[i];
  for (size_t layer = 0; layer < decoders_; ++layer) {
    const AttentionBlock& self = l.self[layer];
    self.norm.apply(x, normed);
    std::vector<float>&keys = prefix.keys[layer], &values = prefix.values[layer];
    keys.resize(keys.size() + w);
    values.resize(values.size() + w);
    self.k.apply(normed, std::span(keys).last(w));
    self.v.apply(normed, std::span(values).last(w));
    self.attend(x, normed, keys, values);
    const AttentionBlock& cross = l.cross[layer];
    cross.norm.apply(x, normed);
    cross.attend(x, normed, source.keys[layer], source.values[layer]);
    l.inner[layer].apply(x);
  }
  ++prefix.length;
  l.norm.apply(x, normed);
  std::vector<float> logits(values_.size());
  l.out.apply(normed, logits);
  const float largest = *std::max_element(logits.begin(), logits.end());
  float total = 0;
  for (const float logit : logits) total += std::exp(logit - largest);
  for (float& logit : logits) logit -= largest + std::log(total);
  return logits;
}

}  // namespace tilecast::tuning
