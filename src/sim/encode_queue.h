#pragma once

// The workers that run the vision tower only, and the images that wait for them. Sources: vLLM,
// examples/online_serving/disaggregated_encoder/disagg_epd_proxy.py (its proxy sends each image of
// a request to the encoders in turn, and the request to a server when all have answered) and
// v1/core/encoder_cache_manager.py (the budget, which limits the images of a run). SGLang's encoder
// servers divide the images of a request evenly, too. Not modelled: that this proxy begins with the
// first encoder for each request; that encoders keep images which they have seen.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "sim/least.h"
#include "sim/serving.h"

namespace tilecast {

class EncodeQueue {
 public:
  /// `encoders` must outlive this object. `requests`: how many there are.
  EncodeQueue(const Encoders& encoders, size_t requests);

  /// When a run ends next; infinity: none is under way.
  double next_s() const { return ends_.value(); }
  /// The images of a request come, one or more.
  void receive(size_t request, int64_t images, double at_s);

  /// A request whose images' tokens a server has.
  struct Encoded {
    size_t request = 0;
    double at_s = 0;  ///< not before the run's end
  };
  /// Ends the run that ends next. Adds the requests whose last images were among its own.
  void advance(std::vector<Encoded>& encoded);

  /// What came before is not counted.
  void forget_counts();
  double busy_s() const { return busy_s_; }  ///< of all workers
  double mean_images() const;
  double mean_s() const;

 private:
  /// Images of one request that a worker has.
  struct Share {
    size_t request = 0;
    int64_t images = 0;
  };
  struct Worker {
    std::deque<Share> waiting;
    std::vector<Share> running;
    double link_free_s = 0;  ///< when its last transfer has ended
  };
  struct Progress {
    int64_t images = 0;  ///< that no server has yet
    double came_s = 0, ready_s = 0;
  };
  void begin(size_t index, double at_s);

  const Encoders& encoders_;
  std::vector<Worker> workers_;
  Least<double> ends_;  ///< of each worker's run
  std::vector<Progress> progress_;
  size_t next_ = 0;  ///< worker that gets the next image
  double busy_s_ = 0, waited_s_ = 0;
  int64_t runs_ = 0, images_ = 0, requests_ = 0;
};

}  // namespace tilecast
