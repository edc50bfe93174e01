#include "plan/training_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/threads.h"
#include "plan/reasons.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

bool differ_in_micro_batch_only(const CandidateGroup& a, const CandidateGroup& b) {
  return std::tie(a.tp, a.cp, a.ep, a.sequence_parallel, a.checkpointing, a.dtype) ==
         std::tie(b.tp, b.cp, b.ep, b.sequence_parallel, b.checkpointing, b.dtype);
}

}  // namespace

void TrainingSearch::judge(const std::vector<CandidateGroup>& groups) {
  std::vector<std::pair<size_t, size_t>> families;
  size_t total = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    total += groups[i].candidates.size();
    if (i > 0 && differ_in_micro_batch_only(groups[i - 1], groups[i]))
      families.back().second = i + 1;
    else
      families.emplace_back(i, i + 1);
  }
  std::vector<Judged> judged(families.size());
  std::mutex mutex;
  Progress progress{.done = 0, .total = total, .unit = "configurations", .note = ""};
  run_all(families.size(), query_.threads, [&](size_t f) {
    const auto [first, end] = families[f];
    judged[f] = judge_family(groups, first, end);
    if (!query_.show_progress) return;
    const std::lock_guard lock(mutex);
    for (size_t i = first; i < end; ++i) progress.done += groups[i].candidates.size();
    query_.show_progress(progress);
  });
  for (Judged& family : judged) {
    std::move(family.candidates.begin(), family.candidates.end(),
              std::back_inserter(plan_.candidates));
    add_counts(plan_.impossible, family.impossible);
    add_counts(plan_.failures, family.failures);
    plan_.skipped += family.skipped;
  }
  if (plan_.candidates.empty()) refuse_empty();
  std::stable_sort(plan_.candidates.begin(), plan_.candidates.end(),
                   [](const TrainingCandidate& a, const TrainingCandidate& b) {
                     if (a.fits() != b.fits()) return a.fits();
                     return a.fits() ? a.bound_s < b.bound_s
                                     : a.missing_bytes() < b.missing_bytes();
                   });
  plan_.fitting =
      static_cast<size_t>(std::count_if(plan_.candidates.begin(), plan_.candidates.end(),
                                        [](const TrainingCandidate& c) { return c.fits(); }));
}

/// The groups from `first` to `end` differ in the micro-batch, the smallest first. Memory rises
/// with it: where no candidate of a group fits, none of a later group does.
TrainingSearch::Judged TrainingSearch::judge_family(const std::vector<CandidateGroup>& groups,
                                                    size_t first, size_t end) const {
  Judged out;
  for (size_t g = first; g < end; ++g) {
    const size_t before = out.candidates.size();
    judge_group(groups[g], out);
    const bool none_fits =
        out.candidates.size() > before &&
        std::none_of(out.candidates.begin() + static_cast<std::ptrdiff_t>(before),
                     out.candidates.end(), [](const TrainingCandidate& c) { return c.fits(); });
    if (!none_fits || !query_.space.micro_batch_sizes.empty()) continue;
    for (size_t larger = g + 1; larger < end; ++larger)
      out.skipped += static_cast<int64_t>(groups[larger].candidates.size());
    break;
  }
  return out;
}

void TrainingSearch::judge_group(const CandidateGroup& group, Judged& out) const {
  std::unique_ptr<GroupCache> cache;
  for (TrainingCandidate c : group.candidates) {
    try {
      if (cache == nullptr) cache = std::make_unique<GroupCache>(facts_, c);
      cache->judge(c);
    } catch (const Error& error) {
      count_error(error, out.impossible, out.failures);
      continue;
    }
    c.reserve_bytes =
        std::llround(query_.memory_reserve * static_cast<double>(c.memory.peak_bytes));
    out.candidates.push_back(std::move(c));
  }
}

bool TrainingSearch::any_fits(const std::vector<CandidateGroup>& groups) const {
  return std::any_of(groups.begin(), groups.end(), [&](const CandidateGroup& group) {
    Judged judged;
    judge_group(group, judged);
    return std::any_of(judged.candidates.begin(), judged.candidates.end(),
                       [](const TrainingCandidate& c) { return c.fits(); });
  });
}

void TrainingSearch::refuse_empty() const {
  std::string why;
  for (const auto* reasons : {&plan_.impossible, &plan_.failures}) {
    for (const auto& [reason, count] : *reasons) {
      if (why.size() < 300) why += fmt::format("; {}", reason);
    }
  }
  throw Error(
      plan_.failures.empty() ? ErrorKind::kInput : ErrorKind::kInternal,
      fmt::format("no configuration of {} GPUs is possible with a batch of {}{}", plan_.ranks,
                  plan_.batch,
                  why.empty() ? "; use a batch that the GPUs divide, or other degrees" : why));
}

GroupCache& TrainingSearch::cache_of(const TrainingCandidate& c) {
  Key key{c.tp, c.cp, c.ep, c.micro_batch_size, c.sequence_parallel, c.checkpointing, c.dtype};
  const auto found = std::find_if(caches_.begin(), caches_.end(),
                                  [&](const auto& entry) { return entry.first == key; });
  if (found == caches_.end())
    caches_.emplace_front(std::move(key), std::make_unique<GroupCache>(facts_, c));
  else
    caches_.splice(caches_.begin(), caches_, found);
  return *caches_.front().second;
}

/// Candidates that share a cache run one after the other.
void TrainingSearch::simulate(const std::vector<size_t>& indices) {
  std::vector<std::pair<GroupCache*, std::vector<size_t>>> groups;
  for (const size_t i : indices) {
    if (plan_.candidates[i].latency_s) continue;
    GroupCache* cache = &cache_of(plan_.candidates[i]);
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.first == cache; });
    if (found == groups.end())
      groups.push_back({cache, {i}});
    else
      found->second.push_back(i);
  }
  std::vector<ReasonCounts> impossible(groups.size()), failures(groups.size());
  run_all(groups.size(), query_.threads, [&](size_t g) {
    for (const size_t i : groups[g].second) {
      try {
        groups[g].first->simulate(plan_.candidates[i]);
      } catch (const Error& error) {
        plan_.candidates[i].latency_s.reset();
        count_error(error, impossible[g], failures[g]);
      }
    }
  });
  for (const ReasonCounts& counts : impossible) add_counts(plan_.impossible, counts);
  for (const ReasonCounts& counts : failures) add_counts(plan_.failures, counts);
  constexpr size_t kKept = 16;  // neighbours in the order of bounds are often of a few groups
  while (caches_.size() > kKept) caches_.pop_back();
}

}  // namespace tilecast
