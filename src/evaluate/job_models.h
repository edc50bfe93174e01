#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"

namespace tilecast {

/// Numbers of jobs and of their models, by the jobs' names: those that differ in a number at their
/// end ("ResNet-18 16" and "ResNet-18 32", "gpt2" and "gpt2 #2") are of one model.
class JobModels {
 public:
  /// The number of the job, a new one for a name that is new.
  size_t index(const std::string& job) {
    const auto [found, fresh] = jobs_.try_emplace(job, model_of_job_.size());
    if (fresh) {
      const size_t next = models_.size();
      model_of_job_.push_back(models_.try_emplace(without_number(job), next).first->second);
    }
    return found->second;
  }

  std::span<const size_t> model_of_job() const { return model_of_job_; }

 private:
  std::map<std::string, size_t> jobs_, models_;
  std::vector<size_t> model_of_job_;
};

}  // namespace tilecast
