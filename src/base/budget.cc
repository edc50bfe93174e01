#include "base/budget.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

thread_local const Budget* budget_of_thread = nullptr;

/// Memory of the process that is in use (resident, proc_pid_statm(5)); 0: not known.
int64_t process_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  long total = 0, resident = 0;
  const int found = std::fscanf(file, "%ld %ld", &total, &resident);
  std::fclose(file);
  return found == 2 ? int64_t{resident} * ::sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

Budget::Budget(const Limits& limits)
    : limits_(limits), start_(std::chrono::steady_clock::now()), start_bytes_(process_bytes()) {}

const Budget& Budget::here() {
  static const Budget usual{Limits{}};
  return budget_of_thread != nullptr ? *budget_of_thread : usual;
}

void Budget::check(std::string_view doing) const {
  if (limits_.seconds) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    if (passed.count() > *limits_.seconds)
      throw LimitReached(
          fmt::format("stopped after {:.3g} s, the limit, while {}; `max-seconds` "
                      "allows more",
                      *limits_.seconds, doing));
  }
  if (limits_.memory_bytes && process_bytes() - start_bytes_ > *limits_.memory_bytes)
    throw LimitReached(
        fmt::format("stopped at {} of memory, the limit, while {}; `max-memory` "
                    "allows more",
                    format_bytes(*limits_.memory_bytes), doing));
}

void Budget::refuse(const BudgetPart& part, std::string_view where) const {
  throw Error(
      ErrorKind::kUnsupported,
      fmt::format("{}: more than {} {}, the most {}; `max-memory` allows more", where,
                  format_integer(most(part)), part.what,
                  limits_.memory_bytes ? "for " + format_bytes(*limits_.memory_bytes) + " of memory"
                                       : "that is expected of real models"));
}

void take_budget(const Budget& budget) { budget_of_thread = &budget; }

LimitScope::LimitScope(const Limits& limits)
    : budget_(std::make_unique<Budget>(limits)), before_(budget_of_thread) {
  budget_of_thread = budget_.get();
}

LimitScope::~LimitScope() { budget_of_thread = before_; }

}  // namespace tilecast
