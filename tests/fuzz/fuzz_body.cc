// A body of any content gets a well-formed answer that shows no bug. Its first byte picks the
// question: 'a' is the first one of the service.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "command/question.h"
#include "serve.h"

namespace {

const std::vector<std::string>& targets() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> targets = {"/v1/forecast_many", "/v1/forecast?fields=latency_s",
                                        "/v1/forecast?format=csv"};
    for (const tilecast::Question& question : tilecast::questions()) {
      if (!question.is_local) targets.push_back("/v1/" + std::string(question.name));
    }
    return targets;
  }();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t which = static_cast<size_t>(data[0] + 256 - 'a') % 256 % targets().size();
  tilecast::server::HttpRequest request;
  request.method = "POST";
  request.target = targets()[which];
  request.host = "localhost";
  request.body.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  tilecast::check_answer(tilecast::fuzzed_api().answer(request));
  return 0;
}
