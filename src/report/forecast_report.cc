// gpt2_large on NVIDIA H100 SXM5 80GB: training, batch 4, seq 1024, fp32
//
//   latency    449 ms   80 % interval 386 ms to 523 ms
//   forward    148 ms
//   backward   301 ms
//   ...
//   operator                    share  each     count  bound    what it is
//   backward h.0.mlp.c_fc       11.2 % 1.40 ms     36  compute  linear 1x4096x1280x5120

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/parallel_report.h"
#include "report/power_text.h"
#include "report/text_table.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

/// The peak, its parts, and what would help if it does not fit.
void add_memory(Lines& lines, const PassMemory& m) {
  std::string fits = m.fits ? "fits into " : "DOES NOT FIT into ";
  const int64_t usable = m.usable_bytes;
  fits += format_bytes(usable) + " that programs see";
  if (m.reserved_bytes && *m.reserved_bytes > usable)
    fits += fmt::format(", unless fragmentation makes the allocator need up to {}",
                        format_bytes(*m.reserved_bytes));
  if (m.largest_batch)
    fits += fmt::format("; largest batch that fits: {}", format_integer(*m.largest_batch));
  lines.add("memory", format_bytes(m.peak_bytes), fits);
  std::string when =
      m.peak_node.empty() ? "" : fmt::format("peak in {}: {}", m.peak_phase, m.peak_node);
  for (const NamedPart& part : kMemoryParts) {
    if (m.at_peak.*part.bytes == 0) continue;
    const bool buckets = m.gradient_buckets_bytes > 0 && part.name == "gradients";
    lines.add("  " + std::string(part.name), format_bytes(m.at_peak.*part.bytes),
              buckets ? fmt::format("{} of them copies in buckets that are reduced",
                                    format_bytes(m.gradient_buckets_bytes))
                      : when);
    if (!buckets) when.clear();
  }
  lines.add("  workspace", format_bytes(m.workspace_bytes), "");
  lines.add("  framework", format_bytes(m.framework_bytes), m.stack);
  if (m.host_optimizer_bytes > 0)
    lines.add("  on the host", format_bytes(m.host_optimizer_bytes),
              "fp32 parameters and states, gradients");
  for (const MemoryRemedy& remedy : m.remedies) {
    const std::string batch =
        remedy.largest_batch
            ? fmt::format("; largest batch {}", format_integer(*remedy.largest_batch))
            : "";
    std::string changes = fmt::format("{} {}", remedy.option, remedy.value);
    for (const auto& [option, value] : remedy.also)
      changes += fmt::format(", {} {}", option, value);
    lines.add("  or with", format_bytes(remedy.peak_bytes),
              fmt::format("{}: {}{}", changes, remedy.fits ? "fits" : "does not fit", batch));
  }
}

/// Inference computes nothing again, so both utilizations are one number there.
std::string utilization_text(const Forecast& f) {
  return f.mode == "training" ? training_utilization_text(f.mfu_ratio, f.utilization_ratio)
                              : fmt::format("MFU {:.0f} %", 100 * f.mfu_ratio);
}

/// The work, and what it makes in a second.
void add_work(Lines& lines, const Forecast& f) {
  lines.add("work", format_si(static_cast<double>(f.flops), "FLOP"),
            fmt::format("{} of memory traffic; {}", format_si(static_cast<double>(f.bytes), "B"),
                        utilization_text(f)));
  if (!f.gpu_flops_per_s) return;
  const int64_t gpus = f.gpus();
  const std::string flops = format_si(*f.gpu_flops_per_s, "FLOP/s");
  if (!f.tokens_per_s) {
    lines.add("throughput", flops, gpus > 1 ? "model FLOPs of a GPU" : "model FLOPs");
    return;
  }
  const std::string each =
      gpus > 1 ? fmt::format("{} tokens/s and {} of model FLOPs a GPU",
                             format_count(*f.tokens_per_s / static_cast<double>(gpus)), flops)
               : fmt::format("{} of model FLOPs", flops);
  lines.add("throughput", format_count(*f.tokens_per_s) + " tokens/s", each);
  if (!f.training_run) return;
  const TrainingRun& run = *f.training_run;
  lines.add("  whole run", format_count(run.days) + " days",
            fmt::format("{} GPU hours; {} tokens in {} steps, without restarts, checkpoints or "
                        "evaluations",
                        format_count(run.gpu_hours), format_si(static_cast<double>(run.tokens), ""),
                        format_count(run.steps)));
  if (run.energy_kwh)
    lines.add(
        "  its energy", format_count(*run.energy_kwh) + " kWh",
        fmt::format(
            "of the GPUs' boards{}{}",
            run.cost ? fmt::format("; costs {}", format_count(*run.cost)) : "",
            run.carbon_kg ? fmt::format("; {} kg of CO2", format_count(*run.carbon_kg)) : ""));
}

/// "2.50 images/s", "85.7 videos/h"
std::string rate_text(double per_s, const char* what) {
  constexpr double kSecondsOfHour = 3600;
  return per_s < 1 ? fmt::format("{} {}/h", format_count(kSecondsOfHour * per_s), what)
                   : fmt::format("{} {}/s", format_count(per_s), what);
}

/// What a batch of a diffusion pipeline is made of.
void add_diffusion(Lines& lines, const DiffusionForecast& d, int64_t outputs) {
  const auto runs = [&](const char* stage) {
    std::vector<std::string> names;
    for (const DiffusionPart& part : d.parts) {
      if (part.stage == stage)
        names.push_back(part.runs > 1 ? fmt::format("{} ({} runs)", part.name, part.runs)
                                      : part.name);
    }
    constexpr size_t kMost = 3;
    if (names.size() > kMost)
      return fmt::format("{} tile sizes", format_integer(static_cast<int64_t>(names.size())));
    return join(names, ", ");
  };
  lines.add("  encode", format_seconds(d.encode_s), runs("encode"));
  lines.add("  step", format_seconds(d.step_s),
            fmt::format("{} steps{}", d.steps,
                        d.passes > 1 ? ", each with and without the prompt (guidance)" : ""));
  lines.add("  decode", format_seconds(d.decode_s), runs("decode"));
  if (d.ranks > 1)
    lines.add("  exchanges", format_seconds(d.communication_s), "of the GPUs, not hidden");
  lines.add("throughput", rate_text(d.outputs_per_s, d.frames ? "videos" : "images"),
            d.seconds_per_video_second
                ? fmt::format("{} for a second of {} frames",
                              format_seconds(*d.seconds_per_video_second), format_count(*d.fps))
            : outputs > 1 ? format_seconds(d.seconds_per_output) + " for each"
                          : "");
}

std::string totals(const Forecast& f, const TableStyle& style) {
  Lines lines;
  lines.add("latency", format_seconds(f.latency_s), "80 % interval " + span_text(f.latency_s));
  if (f.mode == "training") {
    lines.add("  forward", format_seconds(f.forward_s), "");
    lines.add("  backward", format_seconds(f.backward_s), "");
    if (f.optimizer_s > 0) lines.add("  optimizer", format_seconds(f.optimizer_s), "");
  }
  if (f.host_wait_s > 0.001 * f.latency_s)
    lines.add("  host", format_seconds(f.host_wait_s), "the GPU waits for launches");
  if (f.parallel) add_parallel(lines, f);
  if (f.diffusion) add_diffusion(lines, *f.diffusion, f.batch);
  add_work(lines, f);
  if (f.power)
    add_power(lines, *f.power, f.mode == "training" ? "step" : f.diffusion ? "batch" : "pass");
  lines.add("parameters", format_si(static_cast<double>(f.parameters), ""), "");
  add_memory(lines, f.memory);
  return lines.text(style, true);
}

/// The kernels that take the most time.
TextTable kernels_table(const std::vector<JoinedKernels>& joined, double all_s,
                        const TableStyle& style) {
  TextTable table;
  table.header = {"operator", "share", "each", "count", "bound", "use", "kernel", "sizes"};
  table.right = {false, true, true, true, false, true, false, false};
  table.fit = kernel_columns_fit();
  table.min_widths = kernel_columns_least();
  for (size_t i = 0; i < joined.size() && i < style.rows; ++i) {
    const JoinedKernels& j = joined[i];
    const std::string mark = j.row.extrapolated ? "*" : " ";
    table.rows.push_back({j.name("forward"), fmt::format("{:.1f} %", 100 * j.seconds / all_s),
                          format_seconds(j.seconds / static_cast<double>(j.count)) + mark,
                          format_integer(j.count), std::string(j.row.limit),
                          fmt::format("{:.0f} %", 100 * j.row.utilization_ratio),
                          std::string(j.row.op), sizes_text(j.row.shape)});
  }
  constexpr size_t kBound = 4;
  table.color = [&joined](size_t row, size_t column) {
    return column == kBound ? limit_color(joined[row].row.limit) : Color::kNone;
  };
  return table;
}

}  // namespace

std::string forecast_table(const Forecast& f, const TableStyle& style) {
  // A graph file fixes its shapes.
  const std::string shape = f.fixed_shapes ? ""
                                           : fmt::format("batch {}, {}{}", format_integer(f.batch),
                                                         f.input, f.input.empty() ? "" : ", ");
  const int64_t ranks = f.gpus();
  const std::string count = ranks > 1 ? fmt::format("{} x ", format_integer(ranks)) : "";
  std::string out = title_lines(fmt::format("{} on {}{}: {}, {}{}{}", f.model, count, f.gpu_name,
                                            f.mode, shape, dtype_text(f.dtype, f.dtype_source),
                                            clock_text(f.used.execution.clocks)),
                                style) +
                    assumes_lines(assumptions(f), style) + "\n" + totals(f, style) + "\n";
  const std::vector<JoinedKernels> joined = join_alike(f.kernels);
  // Over several ranks, the rows are of all stages.
  const double all_s = f.parallel ? f.kernels_s : f.latency_s;
  if (f.parallel && f.parallel->rank_tables.empty()) out += stages_table(*f.parallel, style) + "\n";
  if (f.parallel && !f.parallel->rank_tables.empty())
    out += rank_tables_text(f.parallel->rank_tables, style) + "\n" +
           step_parts_text(f.parallel->step_parts, style) + "\n";
  if (style.rows > 0) out += format_text_table(kernels_table(joined, all_s, style), style);
  double rest = 0;
  for (size_t i = style.rows; i < joined.size(); ++i) rest += joined[i].seconds;
  if (joined.size() > style.rows)
    out += fmt::format("{} more kinds of kernels: {:.1f} %\n", joined.size() - style.rows,
                       100 * rest / all_s);
  const bool marked = std::any_of(f.kernels.begin(), f.kernels.end(),
                                  [](const KernelForecast& k) { return k.extrapolated; });
  if (marked) out += "* extrapolated\n";
  return out;
}

}  // namespace tilecast
