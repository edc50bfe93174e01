#include "many/sweep_spec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"

namespace tilecast {
namespace {

using DrawKind = SweepDimension::Kind;

/// The number at a place of a seeded sequence, without those before it: SplitMix64 counts.
uint64_t number_of_sequence(uint64_t seed, uint64_t place) {
  constexpr uint64_t kCount = 0x9e3779b97f4a7c15ull;  // of Rng
  return Rng(seed + place * kCount).next();
}

double share_of(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

/// Where `place` goes in a permutation of `count` places that the seed chooses, without a list of
/// them: a Feistel network of four rounds (Luby, Rackoff 1988) permutes the next power of four;
/// what leaves the range goes on until it is back (Black, Rogaway 2002).
uint64_t permuted(uint64_t place, uint64_t count, uint64_t seed) {
  const int half = static_cast<int>(std::bit_width(count - 1) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = place >> half, right = place & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t mixed = number_of_sequence(seed ^ (round << 56), right) & mask;
      left = std::exchange(right, left ^ mixed);
    }
    place = left << half | right;
  } while (place >= count);
  return place;
}

}  // namespace

SweepSpec::Pick SweepSpec::pick(const SweepColumn& column, size_t index) const {
  const SweepDimension& dimension = dimensions_[column.dimension];
  const size_t place = index / dimension.stride % dimension.size;
  if (dimension.kind == DrawKind::kList) return {.index = place, .share = {}};
  double share = share_of(number_of_sequence(column.seed, place));
  if (dimension.kind == DrawKind::kLatinHypercube)
    share = (static_cast<double>(permuted(place, dimension.size, ~column.seed)) + share) /
            static_cast<double>(dimension.size);
  const size_t size = column.values.size();
  if (size == 0) return {.index = 0, .share = share};
  return {.index = std::min(static_cast<size_t>(share * static_cast<double>(size)), size - 1),
          .share = {}};
}

double SweepSpec::number_at(const SweepColumn& column, size_t index) const {
  const Pick at = pick(column, index);
  return at.share ? column.values.drawn(*at.share) : column.values.number(at.index);
}

std::string SweepSpec::text_at(const SweepColumn& column, size_t index) const {
  const Pick at = pick(column, index);
  return at.share ? column.values.text_of(column.values.drawn(*at.share))
                  : column.values.text(at.index);
}

uint64_t SweepSpec::code_at(const SweepColumn& column, size_t index) const {
  const Pick at = pick(column, index);
  return at.share ? std::bit_cast<uint64_t>(column.values.drawn(*at.share)) : at.index;
}

bool SweepSpec::accepts(size_t index) const {
  std::vector<double> numbers;
  for (const Condition& condition : conditions_) {
    numbers.clear();
    for (const size_t column : condition.columns)
      numbers.push_back(number_at(columns_[column], index));
    if (condition.expression.evaluate(numbers) == 0) return false;
  }
  return true;
}

size_t SweepSpec::index_at(size_t place) const {
  // Dimensions of parameters that keep times turn the fastest.
  std::vector<bool> keeps(dimensions_.size());
  for (const SweepColumn& column : columns_)
    if (column.keeps_times) keeps[column.dimension] = true;
  size_t index = 0;
  for (const bool kept : {true, false}) {
    for (size_t d = dimensions_.size(); d-- > 0;) {
      if (keeps[d] != kept) continue;
      index += place % dimensions_[d].size * dimensions_[d].stride;
      place /= dimensions_[d].size;
    }
  }
  return index;
}

std::vector<JobColumn> SweepSpec::job_columns() const {
  std::vector<JobColumn> columns;
  for (const SweepColumn& column : columns_) {
    JobColumn& job = columns.emplace_back();
    job.kind = column.kind;
    job.name = column.job_name();
    if (column.values.is_list()) {
      job.words = &column.values.words();
      job.code = [this, &column](size_t index) {
        return static_cast<int32_t>(pick(column, index).index);
      };
    } else {
      job.computed = [this, &column](size_t index) { return text_at(column, index); };
    }
  }
  return columns;
}

std::vector<OptionColumn> SweepSpec::option_columns(const std::vector<size_t>& points) const {
  std::vector<OptionColumn> table;
  for (const SweepColumn& column : columns_) {
    OptionColumn& made = table.emplace_back();
    made.name = column.kind == JobColumn::Kind::kParameter
                    ? OptionColumn::kParameters + column.job_name()
                    : column.job_name();
    made.codes.reserve(points.size());
    std::unordered_map<uint64_t, int32_t> codes;
    for (const size_t index : points) {
      const auto [it, fresh] =
          codes.emplace(code_at(column, index), static_cast<int32_t>(made.words.size()));
      if (fresh) made.words.push_back(text_at(column, index));
      made.codes.push_back(it->second);
    }
  }
  return table;
}

std::unique_ptr<const SweepSpec> read_sweep_spec(const std::string& path) {
  return std::make_unique<const SweepSpec>(read_file(path), printable(path));
}

}  // namespace tilecast
