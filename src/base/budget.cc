#include "base/budget.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

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

bool CountedMemory::is_counted_ = false;
constinit thread_local const Budget* CountedMemory::budget_ = nullptr;
constinit thread_local int64_t CountedMemory::untold_bytes_ = 0;

void CountedMemory::begin() { is_counted_ = true; }

void CountedMemory::tell() {
  if (budget_ != nullptr) budget_->add_bytes(untold_bytes_);
  untold_bytes_ = 0;
}

void CountedMemory::before(size_t bytes) {
  if (budget_ != nullptr && budget_->is_beyond(bytes)) throw AllocationRefused();
}

const Budget* CountedMemory::exchange(const Budget* budget) {
  tell();
  return std::exchange(budget_, budget);
}

const char* AllocationRefused::what() const noexcept {
  return "more memory than the limit; `max-memory` allows more";
}

Budget::Budget(const Limits& limits) : limits_(limits), start_(std::chrono::steady_clock::now()) {
  if (limits_.memory_bytes && !CountedMemory::is_counted()) start_bytes_ = process_bytes();
}

const Budget& Budget::here() {
  static const Budget usual{Limits{}};
  return CountedMemory::budget_ != nullptr ? *CountedMemory::budget_ : usual;
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
  if (limits_.cancelled != nullptr && *limits_.cancelled)
    throw LimitReached(fmt::format("cancelled while {}", doing));
  if (!limits_.memory_bytes) return;
  if (CountedMemory::is_counted()) CountedMemory::tell();
  const bool is_over = CountedMemory::is_counted()
                           ? holds_too_much()
                           : process_bytes() - start_bytes_ > *limits_.memory_bytes;
  if (is_over)
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

void take_budget(const Budget& budget) { CountedMemory::exchange(&budget); }

LimitScope::LimitScope(const Limits& limits)
    : budget_(std::make_unique<Budget>(limits)), before_(CountedMemory::exchange(budget_.get())) {}

LimitScope::~LimitScope() { CountedMemory::exchange(before_); }

}  // namespace tilecast
