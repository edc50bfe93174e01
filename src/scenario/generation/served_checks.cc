// Whether a model can be served as a request asks.

#include <fmt/format.h>

#include "scenario/generation/offered_load.h"
#include "scenario/generation/served_model.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

[[noreturn]] void refuse_served(const ServedModel& served, const std::string& message) {
  throw Error(ErrorKind::kInput, fmt::format("{}: {}", served.model.name, message));
}

void check_lengths(const ServedModel& served) {
  const Request& asked = served.asked;
  const std::optional<int64_t>& positions = served.model.max_positions;
  const int64_t longest = longest_request(asked), typical = asked.prompt + asked.output;
  const std::optional<VisionTower::Image> image = image_of(served.model, asked);
  const std::string images =
      image ? fmt::format(" ({} of images)", asked.images * image->tokens) : "";
  if (positions && longest > *positions && longest > typical)
    refuse_served(served,
                  fmt::format("requests of up to {} tokens{} are longer than the model's {} "
                              "positions; shorten them by {}",
                              longest, images, *positions, longest - *positions));
  if (positions && typical > *positions)
    refuse_served(
        served, fmt::format("a prompt of {}{} and an output of {} tokens are longer than the "
                            "model's {} positions; shorten them by {}",
                            asked.prompt, images, asked.output, *positions, typical - *positions));
  if (asked.execution.max_model_len && longest > *asked.execution.max_model_len)
    refuse_served(served, fmt::format("requests of {} tokens are longer than `max-model-len` {}",
                                      longest, *asked.execution.max_model_len));
}

/// The ranks that have the same experts divide each of them.
void check_experts(const ServedModel& served) {
  const Request& asked = served.asked;
  const std::string& name = served.model.name;
  const int64_t ffn = served.decoder().expert_ffn_dim, ep = asked.parallel.ep;
  const int64_t parts = asked.execution.tp * asked.execution.dp / ep;
  if (ffn == 0 && (ep > 1 || asked.execution.dp > 1))
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: the model has no experts that ranks share; leave `{}` at 1{}",
                            name, ep > 1 ? "ep" : "dp",
                            ep > 1 ? "" : ", and use `replicas` for several servers"));
  if (ffn == 0 || ffn % parts == 0) return;
  const std::string ranks = parts == asked.execution.tp
                                ? fmt::format("`tp` {}", parts)
                                : fmt::format("`tp` x `dp` / `ep` = {}", parts);
  throw Error(ErrorKind::kInput,
              fmt::format("{}: {} does not divide the {} columns of an expert (ffn_dim)", name,
                          ranks, ffn));
}

}  // namespace

void check_served(const ServedModel& served) {
  check_lengths(served);
  const Decoder& decoder = served.decoder();
  const int64_t tp = served.asked.execution.tp;
  const auto divides = [&](int64_t size, const char* what) {
    if (size % tp != 0)
      refuse_served(served, fmt::format("`tp` {} does not divide the {} {}", tp, size, what));
  };
  divides(decoder.heads, "attention heads");
  divides(decoder.ffn_dim, "columns of the MLP (ffn_dim)");
  check_experts(served);
  if (decoder.kv_heads % tp != 0 && tp % decoder.kv_heads != 0)
    refuse_served(served, fmt::format("`tp` {} and {} key heads: one must divide the other", tp,
                                      decoder.kv_heads));
  if (decoder.recurrent_heads > 0) {
    divides(decoder.recurrent_heads, "heads of the recurrent layers");
    divides(decoder.recurrent_groups, "key groups of the recurrent layers");
  }
  const bool storable = served.kv_dtype == served.dtype() || served.kv_dtype == DType::kFp8 ||
                        served.kv_dtype == DType::kInt8;
  if (!storable)
    refuse_served(served, fmt::format("a KV cache in {} is not supported; known: {}, fp8, int8",
                                      dtype_name(served.kv_dtype), dtype_name(served.dtype())));
}

}  // namespace tilecast
