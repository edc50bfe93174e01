#pragma once

// Speculative decoding: what makes drafts, and what a pass of it takes.

#include <memory>

#include "scenario/generation/step_graph.h"

namespace tilecast {

/// What makes drafts.
struct DraftMethodDef {
  DraftMethod method{};
  /// Probability that a token is accepted, where the request states none, and where it is from.
  double acceptance_rate = 0;
  const char* source = "";
  /// Hidden states of the model that a layer gets for a token, beside the embedding.
  int64_t hidden_states = 0;
};
/// As requested, else by what there is.
const DraftMethodDef& draft_method(const Speculation& speculation);
double acceptance_rate(const Speculation& speculation);

/// Tokens that a step of a sequence writes on average: the draft's before the first that is
/// refused, and one of the model itself. Source: Leviathan et al. 2023, equation 1.
double tokens_per_step(const Speculation& speculation);

/// The model's own layer for multi-token prediction, a head like one of its layers (EAGLE), a
/// smaller model, or a search in the text.
class Drafter {
 public:
  /// `served` must outlive this object. Throws Error{kUnsupported} if there is none of the method.
  explicit Drafter(const ServedModel& served);

  /// One pass, which makes one token for each sequence of the groups.
  Interval pass(std::vector<StepGroup> groups) const;
  /// The draft of a decode step.
  Interval draft(int64_t sequences, int64_t past) const;
  int64_t weights_bytes() const { return weights_bytes_; }
  /// Adds what it keeps of each token.
  void add_caches(Decoder& decoder) const;

 private:
  void use_own_layer();
  void use_head();
  void use_model(const std::string& name);
  struct Product {
    const char* name;
    int64_t in = 0, out = 0;
  };
  Graph products(std::initializer_list<Product> products, int64_t rows) const;
  Graph projection(int64_t tokens) const;
  Graph wider_queries(int64_t tokens) const;
  Graph output(int64_t sequences) const;
  Interval time(Graph graph) const;
  bool is_eagle3() const { return method_.method == DraftMethod::kEagle3; }

  const ServedModel& served_;
  const DraftMethodDef& method_;
  std::optional<ServedStage> layer_;  ///< like the model's last
  std::optional<ModelRef> model_;
  GpuRef gpu_;
  Request request_;  ///< of the smaller model
  std::unique_ptr<ServedModel> smaller_;
  int64_t weights_bytes_ = 0;
};

}  // namespace tilecast
