#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"

namespace tilecast {

/// The columns of a table whose series are compared.
struct SeriesColumns {
  std::string_view swept;               ///< the size along which layers were swept
  std::vector<std::string_view> sizes;  ///< the others; those that the table lacks are ignored
  std::vector<std::string_view> dtypes;
};

/// Finds series of rows that show a kernel whose parameters were not tuned, or the host, rather
/// than the kernel that a server runs. A series is what a table has of one GPU, software, precision
/// and kernel.
///
/// Witnesses of a row are other times of the same GPU and sizes that should not be shorter: by
/// other software in the same precision, and by the same software in wider precisions. A series is
/// left out if
/// - its rows take longer than two witnesses each, by a factor in the geometric mean by which
///   kernels of different software do not differ, and
/// - its times fall along sweeps. A kernel that does more work for each element is slower in order:
///   SGLang's attention to a latent cache in FP8 on Hopper takes 2.4 times as long, since the cache
///   is converted to BF16 before, but the more the longer the cache. That is how the software is.
class SlowSeries {
 public:
  /// `bits` are the bits of an element in each dtype; rows of others have no witnesses.
  SlowSeries(const CsvTable& table, const SeriesColumns& columns,
             std::optional<int64_t> (*bits)(const std::string& dtype));

  /// Why a row should not be used; nullptr: nothing is known against it.
  const std::string* reason(size_t row) const;

 private:
  std::vector<size_t> series_of_;                   ///< by row
  std::vector<std::optional<std::string>> reason_;  ///< by series
};

}  // namespace tilecast
