#pragma once

// Blocks shared by the convolutional families.

#include <string>
#include <vector>

#include "importers/huggingface/layers.h"

namespace tilecast {

/// Adds convolutions, batch norms and pooling to a graph. Images are [b, c, h, w].
class ConvNet {
 public:
  ConvNet(Graph& graph, const GraphRequest& request) : layers_(graph, request) {}

  Layers& layers() { return layers_; }
  GraphBuilder& builder() { return layers_.builder(); }
  int64_t channels(TensorId x) { return layers_.builder().graph().tensor(x).shape[1]; }

  /// The input of the model, square images.
  TensorId pixels(int64_t channels, int64_t side);

  struct Convolution {
    int64_t out = 0;
    int64_t window = 1;
    int64_t stride = 1;
    int64_t groups = 1;
    bool bias = false;
    /// On all sides; -1: half of the window.
    int64_t padding = -1;
  };
  TensorId conv(TensorId x, const std::string& name, const Convolution& options);
  TensorId batch_norm(TensorId x, const std::string& name);
  /// Convolution, batch norm and activation ("": none).
  TensorId conv_norm(TensorId x, const std::string& name, const Convolution& options,
                     const std::string& activation) {
    return keep(apply_conv_norm(x, name, options, activation), {x}, name);
  }
  /// The same where the caller's variable holds another tensor than x.
  TensorId apply_conv_norm(TensorId x, const std::string& name, const Convolution& options,
                           const std::string& activation);
  /// y, until which variables hold other tensors: a module's caller holds what it gives it.
  TensorId keep(TensorId y, std::vector<TensorId> held, const std::string& name);
  /// Pads as TensorFlow's "same" and convolves without further padding.
  TensorId conv_same(TensorId x, const std::string& name, Convolution options);
  /// More rows and columns around each image, in total.
  TensorId pad(TensorId x, int64_t more, const std::string& name);
  /// Squeeze and excitation: channels scaled by two 1x1 convolutions of their means.
  TensorId squeeze_excite(TensorId x, int64_t reduced, const std::string& activation,
                          const std::string& name);
  /// The mean of each channel, [b, c].
  TensorId mean_pool(TensorId x, const std::string& name);
  /// Dropout and a linear layer, the logits of the classes; `pooled` itself if there are none.
  TensorId classify(TensorId pooled, int64_t classes, bool dropout);
  /// Normalizes over the channels of each pixel: as rows, [b, h, w, c], and back.
  TensorId channel_norm(TensorId x, const std::string& name);
  /// [b, c, h, w] → [b, h, w, c], one copy; and back, a view.
  TensorId channels_last(TensorId x, const std::string& name);
  TensorId channels_first(TensorId x);

 private:
  Layers layers_;
};

/// Number of classes if the config's class has a classifier ("…ForImageClassification"), else 0.
int64_t image_classes(const JsonObject& config);

}  // namespace tilecast
