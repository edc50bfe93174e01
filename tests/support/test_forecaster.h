#pragma once

#include "tilecast/forecast.h"

namespace tilecast {

/// The forecaster of all tests of a program: reading the weights takes longer than most of them.
inline const Forecaster& forecaster() {
  static const Forecaster instance;
  return instance;
}

}  // namespace tilecast
