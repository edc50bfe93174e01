#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/terminal.h"

namespace tilecast {
namespace {

using std::chrono::duration;

/// What takes less shows nothing.
constexpr duration<double> kSilent{2.0};
constexpr duration<double> kBetweenDrawings{0.1};

/// "12 s", "3 min", "2.5 h".
std::string rest_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", std::ceil(seconds));
  if (seconds < 100 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

size_t tenths_of(const Progress& progress) {
  return progress.total == 0 ? 0 : 10 * progress.done / progress.total;
}

}  // namespace

std::string progress_text(const Progress& progress, double rate_per_s) {
  const size_t total = std::max<size_t>(progress.total, 1);
  const size_t done = std::min(progress.done, total);
  std::string text = fmt::format("{:3} %  {} of {} {}", 100 * done / total,
                                 format_integer(static_cast<int64_t>(done)),
                                 format_integer(static_cast<int64_t>(total)), progress.unit);
  if (rate_per_s > 0 && done < total)
    text += fmt::format(", {}/s, {} left", format_count(rate_per_s),
                        rest_text(static_cast<double>(total - done) / rate_per_s));
  if (!progress.note.empty()) text += "  " + printable(progress.note);
  return text;
}

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0), start_(Clock::now()) {}

ProgressLine::~ProgressLine() {
  if (on_screen_) fmt::print(stderr, "\r\x1b[K");
}

/// The time before the first call was spent reading, so it is not part of the estimate.
void ProgressLine::begin_count(const Progress& progress, Clock::time_point now) {
  unit_ = progress.unit;
  counted_from_ = now;
  done_before_ = progress.done;
  tenths_ = tenths_of(progress);
}

void ProgressLine::show(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (unit_ != progress.unit || progress.done < done_before_) begin_count(progress, now);
  if (now - start_ < kSilent) return;
  const double elapsed_s = duration<double>(now - counted_from_).count();
  const double done = static_cast<double>(progress.done - done_before_);
  const std::string line = progress_text(progress, elapsed_s > 0 ? done / elapsed_s : 0);
  if (terminal_) {
    if (now - drawn_ < kBetweenDrawings) return;
    drawn_ = now;
    on_screen_ = true;
    const int width = std::max(output_style("").width - 1, 1);
    fmt::print(stderr, "\r\x1b[K{:.{}}", line, width);
    std::fflush(stderr);
  } else if (tenths_of(progress) > tenths_) {
    tenths_ = tenths_of(progress);
    fmt::print(stderr, "tilecast: {}\n", line);
  }
}

}  // namespace tilecast
