#include <tilecast/forecast.h>
#include <tilecast/result.h>

#include <cstdio>

int main() {
  const tilecast::Forecaster forecaster;
  const tilecast::Forecast f = forecaster.forecast(tilecast::load_model_ref("gpt2_large"),
                                                   tilecast::load_gpu_ref("H100"), {.batch = 4});
  std::printf("%.9g\n", f.latency_s.value);
}
