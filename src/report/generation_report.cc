#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/power_text.h"
#include "report/serving_text.h"
#include "report/text_table.h"
#include "software/server_start.h"
#include "software/software.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::string limits_text(const StepForecast& step) {
  std::vector<std::string> parts;
  for (const auto& [limit, share] : step.limits) {
    if (share >= 0.05) parts.push_back(fmt::format("{} {:.0f} %", limit, 100 * share));
  }
  return join(parts, ", ");
}

/// The operators that take the most time of a step.
std::string step_table(const StepForecast& step, const std::string& title,
                       const TableStyle& style) {
  const std::vector<JoinedKernels> rows = join_alike(step.kernels);
  TextTable table;
  table.header = {title, "share", "each", "count", "bound", "use", "kernel", "sizes"};
  table.right = {false, true, true, true, false, true, false};
  table.fit = kernel_columns_fit();
  table.min_widths = kernel_columns_least();
  constexpr size_t kBound = 4;
  table.color = [&rows](size_t row, size_t column) {
    return column == kBound ? limit_color(rows[row].row.limit) : Color::kNone;
  };
  double all = 0;
  for (const JoinedKernels& joined : rows) all += joined.seconds;
  for (size_t i = 0; i < std::min(style.rows, rows.size()); ++i) {
    const KernelForecast& k = rows[i].row;
    table.rows.push_back(
        {rows[i].name(k.phase), fmt::format("{:.1f} %", 100 * rows[i].seconds / all),
         format_seconds(rows[i].seconds / static_cast<double>(rows[i].count)) +
             (k.extrapolated ? "*" : " "),
         format_integer(rows[i].count), std::string(k.limit),
         fmt::format("{:.0f} %", 100 * k.utilization_ratio), std::string(k.op),
         sizes_text(k.shape) + (style.width >= kRoomForMore ? fmt::format(" {}", k.dtype) : "")});
  }
  double rest = 0;
  for (size_t i = style.rows; i < rows.size(); ++i) rest += rows[i].seconds;
  const std::string more = rows.size() > style.rows
                               ? fmt::format("{} more kinds of kernels: {:.1f} %\n",
                                             rows.size() - style.rows, 100 * rest / all)
                               : "";
  return style.rows > 0 ? format_text_table(table, style) + more
                        : fmt::format("{}: {}", title, more);
}

/// " (tp 2, dp 4, ep 8)", where it is not tensor parallelism alone.
std::string layout_text(const GenerationForecast& f) {
  if (f.ranks == f.tp && f.ep == 1) return "";
  std::vector<std::string> parts;
  const std::pair<const char*, int64_t> degrees[] = {
      {"tp", f.tp}, {"pp", f.pp}, {"dp", f.dp}, {"ep", f.ep}};
  for (const auto& [name, ranks] : degrees) {
    if (ranks > 1) parts.push_back(fmt::format("{} {}", name, ranks));
  }
  return fmt::format(" ({})", join(parts, ", "));
}

/// The title of the forecast.
std::string title(const GenerationForecast& f) {
  const char* mean = f.lengths_vary ? "mean " : "";
  const bool images = f.vision && f.vision->images > 0;
  return fmt::format("{} on {}{}: {}prompt {}{}, {}output {}, {}{}{}{}, {}", f.model,
                     f.ranks > 1 ? fmt::format("{} x ", f.ranks) : "", f.gpu_name + layout_text(f),
                     mean, format_integer(f.prompt),
                     images ? " + " + format_integer(f.vision->prompt_tokens) + " of images" : "",
                     mean, format_integer(f.output),
                     f.continuous ? "" : fmt::format("batch {}, ", format_integer(f.batch)),
                     dtype_text(f.dtype, f.dtype_source),
                     f.kv_dtype == f.dtype ? "" : fmt::format(", cache {}", f.kv_dtype),
                     clock_text(f.used.execution.clocks),
                     f.continuous ? fmt::format("served by {}", f.software)
                                  : fmt::format("{}'s kernels", f.software));
}

void add_batch_times(Lines& lines, const GenerationForecast& f) {
  lines.add("time to first token", format_seconds(f.ttft.value),
            fmt::format("80 % interval {}; {}", span_text(f.ttft), limits_text(f.prefill)));
  lines.add("time per output token", format_seconds(f.tpot.value),
            fmt::format("80 % interval {}; {}", span_text(f.tpot), limits_text(f.decode)));
  std::vector<std::string> course;
  const double tokens_per_step = f.drafts ? f.drafts->tokens_per_step : 1;
  for (const auto& [tokens, step] : f.course)
    course.push_back(
        fmt::format("{} at {}", format_seconds(step / tokens_per_step), format_integer(tokens)));
  lines.add("  by length of the cache", "", join(course, ", "));
  lines.add("whole request", format_seconds(f.request.value),
            fmt::format("80 % interval {}", span_text(f.request)));
  const std::string each =
      f.ranks > 1
          ? fmt::format("; {} a GPU", format_count(f.tokens_per_s / static_cast<double>(f.ranks)))
          : "";
  lines.add("throughput", format_count(f.tokens_per_s) + " tokens/s",
            (f.continuous ? "written" : "output tokens of all sequences") + each);
  if (f.power) add_power(lines, *f.power, f.continuous ? "request" : "batch");
}

/// nullptr for software that does not serve.
const ServerDefaults* server_of(const GenerationForecast& f) {
  const std::optional<Software> software = find_software(f.software);
  return software && software_def(*software).serves() ? &software_def(*software).server : nullptr;
}

/// What becomes of sequences that the cache does not hold.
std::string longest_text(const GenerationForecast& f) {
  const CachePool& p = *f.pool;
  if (p.concurrency >= 1) return "";
  if (p.tokens <= 0) return "; the server does not start: no memory is left for the cache";
  const std::string tokens = format_integer(p.tokens);
  const ServerDefaults* const server = server_of(f);
  return server != nullptr && server_starts(*server, p.tokens, p.concurrency)
             ? fmt::format("; the server starts, and takes sequences of at most {} tokens", tokens)
             : fmt::format("; the server does not start: use --max-model-len {} or less", tokens);
}

/// As in vLLM's log. For a static batch, these are the numbers of a server of the model.
void add_pool(Lines& lines, const GenerationForecast& f) {
  const CachePool& p = *f.pool;
  lines.add("  CUDA graphs", format_bytes(p.graphs_bytes), "");
  lines.add("cache blocks", format_integer(p.blocks),
            fmt::format("of {} tokens{} ({} {:.3g}); GPU KV cache size: {} tokens",
                        format_integer(p.block_tokens), f.continuous ? "" : " in a server", p.rule,
                        p.fraction, format_integer(p.tokens)));
  lines.add(
      "  maximum concurrency", fmt::format("{:.2f}x", p.concurrency),
      fmt::format("for {} tokens per request{}", format_integer(p.max_model_len), longest_text(f)));
}

/// "64 KiB a token, 40 KiB of it of the last 1,024 tokens only; 75 MiB of states a sequence"
std::string cache_text(const GenerationForecast& f) {
  std::vector<std::string> parts;
  if (f.kv_bytes_per_token > 0) {
    std::string tokens = format_bytes(f.kv_bytes_per_token) + " a token";
    const std::string last =
        fmt::format("of the last {} tokens only", format_integer(f.window_tokens));
    if (f.window_bytes_per_token == f.kv_bytes_per_token) {
      tokens += ", " + last;
    } else if (f.window_bytes_per_token > 0) {
      tokens += fmt::format(", {} of it {}", format_bytes(f.window_bytes_per_token), last);
    }
    parts.push_back(tokens);
  }
  if (f.state_bytes_per_sequence > 0)
    parts.push_back(format_bytes(f.state_bytes_per_sequence) + " of states a sequence");
  return join(parts, "; ") + (f.ranks > 1 ? ", on all GPUs" : "");
}

/// Before what programs see of the memory: the part of it that the peak exceeds.
std::string exceeded_text(const Memory& m) {
  return m.usable_bytes < m.device_bytes
             ? fmt::format("DOES NOT FIT into {} of the ", format_bytes(m.usable_bytes))
             : "DOES NOT FIT into ";
}

void add_memory(Lines& lines, const GenerationForecast& f) {
  lines.add(
      "parameters", format_si(static_cast<double>(f.parameters), ""),
      f.active_parameters == f.parameters
          ? ""
          : fmt::format("{} active", format_si(static_cast<double>(f.active_parameters), "")));
  const bool has_room =
      f.memory.peak_bytes <= f.memory.usable_bytes;  // a prefill worker may have none
  lines.add(
      "memory", format_bytes(f.memory.peak_bytes),
      fmt::format(
          "{}{} that programs see{}; {}: {}{}", has_room ? "of " : exceeded_text(f.memory),
          format_bytes(f.memory.device_bytes), f.ranks > 1 ? " on each GPU" : "",
          // Requests of a trace are shorter than the longest: more of them run.
          f.lengths_vary ? "sequences of the longest request that fit" : "largest batch that fits",
          format_integer(f.memory.largest_batch.value_or(0)),
          has_room && !f.memory.fits ? "; a prefill worker DOES NOT FIT" : ""));
  lines.add("  weights", format_bytes(f.memory.weights_bytes), "");
  lines.add("  cache", format_bytes(f.memory.cache_bytes), cache_text(f));
  const ServerDefaults* const server = server_of(f);
  lines.add("  activations", format_bytes(f.memory.activations_bytes),
            server == nullptr        ? ""
            : server->profiles_steps ? "of the profiling run"
                                     : "of the largest step");
  // Servers count their CUDA graphs as workspace; these have a line of their own.
  const int64_t graphs = f.pool ? f.pool->graphs_bytes : 0;
  lines.add("  workspace", format_bytes(f.memory.workspace_bytes - graphs), "");
  lines.add("  framework", format_bytes(f.memory.framework_bytes), "");
  if (f.pool) add_pool(lines, f);
}

/// The vision tower, which takes memory also without images.
void add_vision(Lines& lines, const GenerationForecast& f) {
  if (!f.vision) return;
  const VisionForecast& v = *f.vision;
  const std::string size = format_si(static_cast<double>(v.parameters), "") + " parameters";
  if (v.images == 0) {
    lines.add("vision tower", format_bytes(v.weights_bytes),
              fmt::format("of the weights, {}; no images (--images)", size));
    return;
  }
  lines.add("vision tower", format_seconds(v.time.value),
            fmt::format("of the time to first token; {}, {}; {}", size,
                        format_bytes(v.weights_bytes), limits_text(v.step)));
  lines.add("  tokens of images", format_integer(v.prompt_tokens),
            fmt::format("in each prompt: {} image{} of {} x {} pixels, {} tokens each",
                        format_integer(v.images), v.images == 1 ? "" : "s", v.image_side,
                        v.image_side, format_integer(v.image_tokens)));
}

std::string drafter_words(const DraftForecast& d) {
  if (d.method == "ngram") return "a search in the text";
  if (d.method == "mtp") return "the model's own layer";
  if (d.method == "draft_model") return d.model;
  const std::string head = d.method == "eagle" ? "an EAGLE head" : "an EAGLE-3 head";
  return d.model.empty() ? head : fmt::format("{} ({})", head, d.model);
}

void add_drafts(Lines& lines, const GenerationForecast& f) {
  if (!f.drafts) return;
  const DraftForecast& d = *f.drafts;
  lines.add(
      "drafts", fmt::format("{} tokens", d.tokens),
      fmt::format("by {}, {:.2f} tokens a step if {:.3g} is accepted{}; {} of a step, {}",
                  drafter_words(d), d.tokens_per_step, d.acceptance_rate,
                  d.acceptance_source == "given" ? "" : fmt::format(" ({})", d.acceptance_source),
                  format_seconds(d.time.value), format_bytes(d.weights_bytes)));
}

void add_adapters(Lines& lines, const GenerationForecast& f) {
  if (!f.adapters) return;
  const AdaptersForecast& a = *f.adapters;
  lines.add("adapters",
            fmt::format("{} of rank {}", format_integer(a.adapters), format_integer(a.rank)),
            fmt::format("memory for {} of rank {}, {} a GPU; one comes from the host in {}",
                        format_integer(a.max_loras), format_integer(a.max_lora_rank),
                        format_bytes(a.reserved_bytes), format_seconds(a.load_s)));
}

}  // namespace

std::string llm_table(const GenerationForecast& f, const TableStyle& style) {
  std::string out = title_lines(title(f), style) + assumes_lines(assumptions(f), style) + "\n";
  if (f.serving) out += serving_text(*f.serving, f.memory.largest_batch.value_or(0), style);
  if (f.continuous) out += "  a single request on an idle server, its steps alone\n";
  Lines lines;
  add_batch_times(lines, f);
  if (!f.cluster.empty() && f.ranks > 1) lines.add("cluster", "", f.cluster);
  add_vision(lines, f);
  add_drafts(lines, f);
  add_adapters(lines, f);
  add_memory(lines, f);
  out += lines.text(style);
  if (f.vision && f.vision->images > 0)
    out += "\n" + step_table(f.vision->step, "vision tower step", style);
  out += fmt::format("\n{}\n{}", step_table(f.prefill, "prefill step", style),
                     step_table(f.decode, "decode step", style));
  const auto marked = [](const StepForecast& step) {
    return std::any_of(step.kernels.begin(), step.kernels.end(),
                       [](const KernelForecast& k) { return k.extrapolated; });
  };
  if (marked(f.prefill) || marked(f.decode) || (f.vision && marked(f.vision->step)))
    out += "* extrapolated\n";
  return out;
}

}  // namespace tilecast
