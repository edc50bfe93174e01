#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tilecast/train.h"

namespace tilecast {

/// Learns one network or forest and stores it. Networks report each epoch.
using ReportEpoch = std::function<void(const EpochReport&)>;
using Job = std::function<void(const ReportEpoch&)>;

/// Epochs of each network, by the name of its task.
using TrainingHistory = std::map<std::string, std::vector<EpochReport>>;

/// Runs jobs that do not depend on each other on several threads and keeps what they report.
class JobRunner {
 public:
  JobRunner(int threads, int total_epochs, ShowProgress show);

  /// Returns when all jobs have ended. Throws what a job throws; the rest is then not begun.
  void run(const std::vector<Job>& jobs);
  const TrainingHistory& history() const { return history_; }

 private:
  void report(const EpochReport& epoch);

  const int threads_;
  const ShowProgress show_;
  std::mutex mutex_;
  TrainProgress progress_;
  TrainingHistory history_;
};

}  // namespace tilecast
