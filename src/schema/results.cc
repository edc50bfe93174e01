#include "schema/results.h"

#include <array>

#include "schema/fields.h"

namespace tilecast {

template const RecordDef& record_of<KernelForecast>();
template const RecordDef& record_of<Forecast>();
template const RecordDef& record_of<RankTables>();

std::span<const ResultDef> results() {
  static const std::array kResults = {
      ResultDef{"forecast", "tilecast forecast MODEL --gpu GPU", &record_of<Forecast>()},
  };
  return kResults;
}

}  // namespace tilecast
