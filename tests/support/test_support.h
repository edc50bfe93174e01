#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "tilecast/error.h"
#include "tilecast/request.h"

namespace tilecast {

/// Expects the expression to throw Error of `kind` whose message holds `part`.
#define EXPECT_ERROR(expression, error_kind, part)                                        \
  do {                                                                                    \
    try {                                                                                 \
      (void)(expression);                                                                 \
      ADD_FAILURE() << #expression << " did not throw";                                   \
    } catch (const ::tilecast::Error& error) {                                            \
      EXPECT_EQ(static_cast<int>(error.kind()),                                           \
                static_cast<int>(::tilecast::ErrorKind::error_kind))                      \
          << error.what();                                                                \
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what(); \
    }                                                                                     \
  } while (false)

/// The whole message of the Error that the call throws, for tests that state all of it.
inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Where the request says nothing, what published times were measured with: fp32, attention step by
/// step, no optimizer step, no loss in the time.
inline Request as_published(Request request) {
  if (request.kind != RequestKind::kPass) return request;
  if (request.execution.dtype.empty()) request.execution.dtype = "fp32";
  if (!request.execution.attention) request.execution.attention = AttentionKind::kEager;
  if (request.mode != Mode::kTraining) return request;
  if (!request.optimizer) request.optimizer = Optimizer::kNone;
  if (!request.parallel.main_params) request.parallel.main_params = MainParams::kAsModel;
  request.optimizer_impl = OptimizerImpl::kForeach;
  request.loss = Loss::kMemory;
  return request;
}

/// A folder of its own that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tilecast-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tilecast
