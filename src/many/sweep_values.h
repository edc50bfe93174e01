#pragma once

// The values that a column of a sweep may take: a list, or a range of numbers.

#include <cstdint>
#include <string>
#include <vector>

namespace tilecast {

enum class SweepType : uint8_t { kText, kWhole, kNumber };

/// Numbers between two ends, which belong to it.
struct SweepRange {
  double from = 0, to = 0;
  double step = 0;     ///< 0: not given
  int64_t count = 0;   ///< numbers at equal distances; 0: not given
  bool log2 = false;   ///< distances of the logarithms; without a count: powers of two times `from`
  bool whole = false;  ///< rounded to whole numbers
};

/// Values are found by their index, none is stored but those of lists. Some ranges can only be
/// drawn from: they have no index.
class SweepValues {
 public:
  SweepValues() = default;
  /// `numbers`: of the words; not a number where one is none.
  SweepValues(std::vector<std::string> words, std::vector<double> numbers, SweepType type);
  /// `size`: of `sizes_of`; 0: it can be drawn from only.
  SweepValues(const SweepRange& range, size_t size);

  /// How many numbers the range has, which may be more than any sweep may have; 0: any number
  /// between its ends.
  static double size_of(const SweepRange& range);

  SweepType type() const { return type_; }
  bool is_list() const { return !words_.empty(); }
  /// Of a list.
  const std::vector<std::string>& words() const { return words_; }
  size_t size() const { return size_; }

  double number(size_t index) const;
  std::string text(size_t index) const;
  /// For a range without a size: `share` in [0, 1) of the way from one end to the other.
  double drawn(double share) const;
  std::string text_of(double number) const;

 private:
  std::vector<std::string> words_;
  std::vector<double> numbers_;
  SweepRange range_;
  SweepType type_ = SweepType::kText;
  size_t size_ = 0;
};

}  // namespace tilecast
