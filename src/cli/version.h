#pragma once

#include <string>
#include <string_view>

namespace tilecast {

/// The first digits of the commit that was built, "+changes" behind them where files differed from
/// it; empty: not known.
std::string_view built_commit();

/// "tilecast 1.2.3 (commit 0123456789ab, weights 0123456789abcdef)": the weights are those of
/// kernels, by their checksum.
std::string version_text();

}  // namespace tilecast
