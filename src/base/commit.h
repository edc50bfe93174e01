#pragma once

#include <string_view>

namespace tilecast {

/// The first digits of the commit that was built, "+changes" behind them where files differed from
/// it; empty: not known.
std::string_view built_commit();

}  // namespace tilecast
