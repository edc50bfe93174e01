#include "importers/huggingface/convnet.h"

#include <algorithm>
#include <utility>

#include "importers/huggingface/fields.h"

namespace tilecast {

TensorId ConvNet::pixels(int64_t channels, int64_t side) {
  return builder().input("pixel_values", {layers_.request().batch, channels, side, side},
                         layers_.request().dtype);
}

TensorId ConvNet::conv(TensorId x, const std::string& name, const Convolution& o) {
  const Shape shape = {o.out, channels(x) / o.groups, o.window, o.window};
  std::vector<TensorId> operands = {x, layers_.weight(name + ".weight", shape)};
  if (o.bias) operands.push_back(layers_.weight(name + ".bias", {o.out}));
  const int64_t padding = o.padding < 0 ? (o.window - 1) / 2 : o.padding;
  return layers_.op("conv2d", std::move(operands), name,
                    {{"stride", o.stride}, {"padding", padding}, {"groups", o.groups}});
}

TensorId ConvNet::batch_norm(TensorId x, const std::string& name) {
  const Shape shape = {channels(x)};
  std::vector<TensorId> operands = {x, layers_.weight(name + ".weight", shape),
                                    layers_.weight(name + ".bias", shape)};
  for (const char* statistic : {".running_mean", ".running_var"})
    operands.push_back(builder().tensor({.name = name + statistic,
                                         .shape = shape,
                                         .dtype = layers_.request().dtype,
                                         .kind = TensorKind::kBuffer,
                                         .segment = builder().current_segment()}));
  return builder().add("batch_norm", std::move(operands), name).front();
}

TensorId ConvNet::keep(TensorId y, std::vector<TensorId> held, const std::string& name) {
  held.insert(held.begin(), y);
  return layers_.op("keep", std::move(held), name);
}

TensorId ConvNet::apply_conv_norm(TensorId x, const std::string& name, const Convolution& o,
                                  const std::string& activation) {
  const TensorId y = batch_norm(conv(x, name + ".convolution", o), name + ".normalization");
  return activation.empty() ? y : layers_.activation(y, activation, name + ".activation");
}

TensorId ConvNet::conv_same(TensorId x, const std::string& name, Convolution o) {
  const int64_t side = builder().graph().tensor(x).shape[2];
  const int64_t rest = side % o.stride;
  const int64_t more = std::max<int64_t>(o.window - (rest == 0 ? o.stride : rest), 0);
  o.padding = 0;
  // The padding is a kernel of its own; without rows to add, constant_pad_nd clones its input.
  const TensorId padded =
      more == 0 ? layers_.op("copy", {x}, name + ".pad") : pad(x, more, name + ".pad");
  return conv(padded, name, o);
}

TensorId ConvNet::pad(TensorId x, int64_t more, const std::string& name) {
  return more == 0 ? x : layers_.op("pad2d", {x}, name, {{"rows", more}, {"columns", more}});
}

TensorId ConvNet::squeeze_excite(TensorId x, int64_t reduced, const std::string& activation,
                                 const std::string& name) {
  const int64_t all = channels(x);
  const TensorId mean = layers_.op("reduce_mean", {x}, name + ".squeeze",
                                   {{"shape", Shape{layers_.request().batch, all, 1, 1}}});
  const TensorId few = layers_.activation(
      conv(mean, name + ".reduce", {.out = reduced, .bias = true}), activation, name + ".act");
  const TensorId scale =
      layers_.op("sigmoid", {conv(few, name + ".expand", {.out = all, .bias = true})}, name);
  return layers_.op("mul", {x, scale}, name + ".scale");
}

TensorId ConvNet::mean_pool(TensorId x, const std::string& name) {
  const int64_t batch = layers_.request().batch, all = channels(x);
  const TensorId mean = layers_.op("reduce_mean", {x}, name, {{"shape", Shape{batch, all, 1, 1}}});
  return layers_.view(mean, {batch, all});
}

TensorId ConvNet::channels_last(TensorId x, const std::string& name) {
  return layers_.op("copy", {layers_.transpose(x, {0, 2, 3, 1})}, name);
}

TensorId ConvNet::channels_first(TensorId x) { return layers_.transpose(x, {0, 3, 1, 2}); }

TensorId ConvNet::channel_norm(TensorId x, const std::string& name) {
  return channels_first(layers_.layer_norm(channels_last(x, name), name));
}

TensorId ConvNet::classify(TensorId pooled, int64_t classes, bool dropout) {
  if (classes == 0) return pooled;
  return layers_.linear(layers_.dropout(pooled, "dropout", dropout), "classifier", {classes});
}

int64_t image_classes(const JsonObject& config) {
  return class_name(config, "").ends_with("ForImageClassification") ? label_count(config) : 0;
}

}  // namespace tilecast
