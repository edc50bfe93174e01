#include "report/serving_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tilecast {
namespace {

std::string load_text(const GenerationForecast::Serving& s) {
  if (s.trace) return fmt::format("{} requests of a trace", format_integer(s.all.requests));
  if (s.rate > 0)
    return fmt::format("{} requests a second, {} in all", format_count(s.rate),
                       format_integer(s.all.requests));
  return fmt::format("{} client{}, {} requests", format_integer(s.concurrency),
                     s.concurrency == 1 ? "" : "s", format_integer(s.all.requests));
}

/// The metrics of clients in the steady part, which plans and comparisons judge by, and over all
/// requests.
std::string served_table(const GenerationForecast::Serving& s, const TableStyle& style) {
  TextTable table;
  table.header = {"", "steady part", "all requests"};
  if (!s.steady) table.header = {"", "all requests"};
  table.right = {false, true, true};
  const auto add = [&](const std::string& name, const auto& text) {
    table.rows.push_back({name});
    if (s.steady) table.rows.back().push_back(text(*s.steady));
    table.rows.back().push_back(text(s.all));
  };
  add("requests", [](const ServerMetrics& p) { return format_integer(p.requests); });
  const std::pair<const char*, Distribution ServerMetrics::*> times[] = {
      {"time to first token", &ServerMetrics::ttft},
      {"time per output token", &ServerMetrics::tpot},
      {"end to end", &ServerMetrics::e2e}};
  const std::pair<const char*, Interval Distribution::*> values[] = {
      {"mean", &Distribution::mean},
      {"median", &Distribution::median},
      {"p99", &Distribution::p99}};
  for (const auto& [name, time] : times) {
    for (const auto& [which, value] : values)
      add(fmt::format("{}, {}", name, which),
          [&](const ServerMetrics& p) { return format_seconds(p.*time.*value); });
  }
  add("requests/s", [&](const ServerMetrics& p) { return format_count(p.requests_per_s); });
  add("output tokens/s",
      [&](const ServerMetrics& p) { return format_count(p.output_tokens_per_s); });
  add("total tokens/s", [&](const ServerMetrics& p) { return format_count(p.total_tokens_per_s); });
  if (s.gpus > 1) {
    const auto gpus = static_cast<double>(s.gpus);
    add("output tokens/s per GPU",
        [&](const ServerMetrics& p) { return format_count(p.output_tokens_per_s / gpus); });
    add("total tokens/s per GPU",
        [&](const ServerMetrics& p) { return format_count(p.total_tokens_per_s / gpus); });
  }
  return format_text_table(table, style, 2);
}

std::string limits_text(const GenerationForecast::Serving& s) {
  std::vector<std::string> parts;
  if (s.ttft_limit_s) parts.push_back("first token within " + format_seconds(*s.ttft_limit_s));
  if (s.tpot_limit_s) parts.push_back("each token within " + format_seconds(*s.tpot_limit_s));
  return join(parts, ", ");
}

void add_prefix_cache(Lines& lines, const PrefixCacheForecast& p) {
  lines.add("prefix cache", fmt::format("{:.1f} % of prompts", 100 * p.hit_ratio),
            fmt::format("were in it; {:.1f} % would be in one of any size; {} tokens evicted, {} "
                        "cached at the end",
                        100 * p.most_hit_ratio, format_integer(p.evicted_tokens),
                        format_integer(p.cached_tokens)));
  if (p.host_capacity_tokens > 0)
    lines.add("  host memory", fmt::format("{:.1f} % of prompts", 100 * p.host_hit_ratio),
              fmt::format("came from it at {:.3g} GB/s a GPU; room for {} tokens",
                          1e-9 * p.host_bytes_per_s, format_integer(p.host_capacity_tokens)));
}

void add_prefill_pool(Lines& lines, const PrefillPoolForecast& p) {
  lines.add("prefill pool", fmt::format("{} x {} GPUs", p.workers, p.gpus),
            fmt::format("tp {}, pp {}, dp {}, ep {}; busy {:.0f} % of the time; {} each", p.tp,
                        p.pp, p.dp, p.ep, 100 * p.busy_share, format_bytes(p.peak_bytes)));
  lines.add("  transfer of the cache", format_seconds(p.transfer_s),
            fmt::format("for a prompt of mean length, after its first token; {} with waiting",
                        format_seconds(p.mean_transfer_s)));
}

void add_encode_pool(Lines& lines, const EncodePoolForecast& p) {
  lines.add("encode pool", fmt::format("{} x {} GPU{}", p.workers, p.gpus, p.gpus == 1 ? "" : "s"),
            fmt::format("tp {}; {:.1f} images in a run, {} at most; busy {:.0f} % of the time; {} "
                        "each",
                        p.tp, p.mean_images, p.images_together, 100 * p.busy_share,
                        format_bytes(p.peak_bytes)));
  lines.add(
      "  images of a prompt", format_seconds(p.mean_encode_s),
      fmt::format(
          "until a server has their tokens, with waiting; {} for the transfer on an idle link",
          format_seconds(p.transfer_s)));
}

}  // namespace

std::string serving_text(const GenerationForecast::Serving& s, int64_t sequences,
                         const TableStyle& style) {
  Lines lines;
  lines.add("load", load_text(s),
            fmt::format("at most {} sequences and {} tokens in a step",
                        format_integer(s.max_num_seqs), format_integer(s.max_num_batched_tokens)));
  if (s.warmup_requests > 0)
    lines.add("  warm-up",
              fmt::format("{} requests not counted", format_integer(s.warmup_requests)),
              "sent before the others: conversations begin without earlier turns");
  lines.add("mean batch", fmt::format("{:.1f} sequences", s.mean_batch),
            fmt::format("decode in a step; busy {:.0f} % of the time", 100 * s.busy_share));
  lines.add("cache",
            fmt::format("{} sequence{}", format_integer(sequences), sequences == 1 ? "" : "s"),
            fmt::format("of the longest request; used {:.0f} % on average; {} preemptions",
                        100 * s.cache_use, format_integer(s.preemptions)));
  if (s.prefix_cache) add_prefix_cache(lines, *s.prefix_cache);
  if (s.adapter_loads)
    lines.add(
        "adapters", fmt::format("{:.1f} in a step", s.mean_adapters.value_or(0)),
        fmt::format("came from the host's memory {} times", format_integer(*s.adapter_loads)));
  if (s.replicas > 1)
    lines.add("replicas", format_integer(s.replicas),
              "cache and mean batch are those of one; load and rates those of all");
  if (s.prefill_pool) add_prefill_pool(lines, *s.prefill_pool);
  if (s.encode_pool) add_encode_pool(lines, *s.encode_pool);
  if (s.goodput_requests_per_s) {
    const double each = *s.goodput_requests_per_s / static_cast<double>(s.gpus);
    lines.add("goodput", format_count(*s.goodput_requests_per_s) + " requests/s",
              limits_text(s) +
                  (s.gpus > 1 ? fmt::format("; {} a GPU", format_count(each)) : std::string()));
  }
  const std::string steady =
      s.steady
          ? fmt::format("all but the first and last {} to arrive, the maximum number in flight",
                        s.most_in_flight)
          : fmt::format(
                "none: up to {} requests were in flight, and {} requests are too few to leave out "
                "as many at both ends",
                s.most_in_flight, s.all.requests);
  TextTable note;
  note.rows = {{"steady part", steady}};
  note.fit = {Fit::kWhole, Fit::kWrap};
  return fmt::format("{}\n{}\n{}\n", lines.text(style), served_table(s, style),
                     format_text_table(note, style, 2));
}

}  // namespace tilecast
