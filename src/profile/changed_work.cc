#include "profile/changed_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/fail.h"
#include "base/text.h"

namespace tilecast {
namespace {

/// The size with the most time; 0: none.
int64_t longest(const std::map<int64_t, int64_t>& time_by_size) {
  const auto most =
      std::max_element(time_by_size.begin(), time_by_size.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == time_by_size.end() ? 0 : most->first;
}

/// The rows that a product's left operand has, in the order in which it lies in memory.
const TracedTensor* left_rows(std::string_view name, const Arguments& arguments) {
  const int place = product_place(name);
  if (place < 0) return nullptr;
  const TracedTensor* left = tensor_at(arguments, static_cast<size_t>(place));
  return left != nullptr && left->shape.size() == 2 && !left->is_transposed() ? left : nullptr;
}

int64_t found_batch(const std::vector<std::pair<std::string_view, Arguments>>& calls,
                    const std::vector<const OperatorGroup*>& of) {
  std::map<int64_t, int64_t> sure, leading, rows;  // time by size
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto& [name, arguments] = calls[i];
    const int64_t time = std::max<int64_t>(1, of[i]->total_ns);
    if (const TracedTensor* left = left_rows(name, arguments)) rows[left->shape[0]] += time;
    if (product_place(name) >= 0) continue;
    const bool is_sure = is_convolution(name) || is_attention(name);
    for (size_t place = 0; place < arguments.size(); ++place) {
      const TracedTensor* tensor = tensor_at(arguments, place);
      if (tensor == nullptr || tensor->shape.size() < 3) continue;
      if (static_cast<int>(place) == weight_place(name)) continue;
      (is_sure ? sure : leading)[tensor->shape[0]] += time;
      break;
    }
  }
  return !sure.empty() ? longest(sure) : !leading.empty() ? longest(leading) : longest(rows);
}

/// The leading dimensions of a tensor together: one, two, .. of them.
void add_rows(std::set<int64_t>& rows, const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t product = 1;
  for (size_t i = 0; i + 1 < shape.size() && product < kMost / std::max<int64_t>(1, shape[i]);
       ++i) {
    product *= shape[i];
    rows.insert(product);
  }
}

/// Sizes of the right operand where the left one has samples as rows: a weight, in both orders.
void add_weights(std::set<Shape>& weights, std::string_view name, const Arguments& arguments,
                 const std::set<int64_t>& rows) {
  if (const int place = weight_place(name); place >= 0)
    if (const TracedTensor* weight = tensor_at(arguments, static_cast<size_t>(place));
        weight != nullptr && !rows.contains(weight->shape[0]))
      weights.insert(weight->shape);
  const TracedTensor* left = left_rows(name, arguments);
  if (left == nullptr || !rows.contains(left->shape[0])) return;
  const TracedTensor* right = tensor_at(arguments, static_cast<size_t>(product_place(name)) + 1);
  if (right == nullptr || right->shape.size() != 2) return;
  weights.insert(right->shape);
  weights.insert({right->shape[1], right->shape[0]});
}

/// A size or a stride with another batch; one more than the limit if it is above it.
int64_t with_other_batch(int64_t size, int64_t from, int64_t to) {
  const int64_t each = size / from;
  return each > kMostTracedElements / to ? kMostTracedElements + 1 : each * to;
}

bool are_possible(const Arguments& arguments) {
  return std::all_of(arguments.begin(), arguments.end(), [](const TracedArgument& argument) {
    return std::all_of(argument.tensors.begin(), argument.tensors.end(),
                       [](const TracedTensor& tensor) { return is_possible(tensor.shape); });
  });
}

/// A dimension of samples with another number of them; strides of the dimensions around it follow.
void scale(TracedTensor& tensor, size_t dim, int64_t from, int64_t to) {
  const int64_t stride = tensor.strides[dim];
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    if (i != dim && tensor.strides[i] > stride && tensor.strides[i] % from == 0)
      tensor.strides[i] = with_other_batch(tensor.strides[i], from, to);
  tensor.shape[dim] = with_other_batch(tensor.shape[dim], from, to);
}

bool counts_samples(const BatchSizes& sizes, int64_t size) {
  return sizes.rows.contains(size) && size % sizes.batch == 0;
}

/// [m, k] x [k, n]: samples are the rows of the left operand, or where that is transposed, as in a
/// weight's gradient, what is summed over.
BatchEffect change_product(size_t place, Arguments& arguments, const BatchSizes& sizes,
                           int64_t batch) {
  if (tensor_at(arguments, place) == nullptr || tensor_at(arguments, place + 1) == nullptr)
    return BatchEffect::kUnknown;
  TracedTensor& left = arguments[place].tensors.front();
  TracedTensor& right = arguments[place + 1].tensors.front();
  const auto change = [&](TracedTensor& tensor, size_t dim) {
    scale(tensor, dim, sizes.batch, batch);
    return BatchEffect::kScaled;
  };
  if (left.shape.size() != 2 || right.shape.size() != 2) {
    if (!counts_samples(sizes, left.shape[0])) return BatchEffect::kUnknown;
    const bool both = right.shape.size() == left.shape.size() && right.shape[0] == left.shape[0];
    if (both) change(right, 0);
    return change(left, 0);
  }
  const bool rows = counts_samples(sizes, left.shape[0]);
  const bool summed = counts_samples(sizes, left.shape[1]);
  if (!rows && !summed) return BatchEffect::kUnknown;
  const bool sums = summed && (!rows || left.is_transposed());
  if (!sums && place == 1)
    for (TracedTensor& added : arguments[0].tensors)  // a bias of one row has no samples
      if (added.shape.size() == 2 && added.shape[0] == left.shape[0]) change(added, 0);
  if (sums) change(right, 0);
  return change(left, sums ? 1 : 0);
}

/// The shape with most dimensions, without a weight's.
Shape widest_shape(std::string_view name, const Arguments& arguments) {
  Shape widest;
  for (size_t place = 0; place < arguments.size(); ++place)
    for (const TracedTensor& tensor : arguments[place].tensors)
      if (tensor.shape.size() > widest.size() && static_cast<int>(place) != weight_place(name))
        widest = tensor.shape;
  return widest;
}

/// Lists of parameters: what optimizers work on.
bool is_of_parameters(std::string_view name) {
  return name.starts_with("_foreach_") || name.starts_with("_fused_adam") ||
         name.starts_with("_fused_sgd");
}

/// What a tensor's sizes say of it.
BatchEffect effect_on(const TracedTensor& tensor, const BatchSizes& sizes) {
  const bool samples = counts_samples(sizes, tensor.shape[0]);
  const bool weight = sizes.weights.contains(tensor.shape);
  // As large as both: nothing tells which.
  if (samples && weight) return BatchEffect::kUnknown;
  if (weight || tensor.shape.size() == 1) return BatchEffect::kNone;
  return samples ? BatchEffect::kScaled : BatchEffect::kUnknown;
}

bool is_side_of_weight(const BatchSizes& sizes, int64_t size) {
  return std::any_of(sizes.weights.begin(), sizes.weights.end(), [&](const Shape& shape) {
    return std::find(shape.begin(), shape.end(), size) != shape.end();
  });
}

/// Vectors of samples, as labels: as long as the rows of a matrix beside them, or alone.
bool change_vectors(Arguments& arguments, const std::set<int64_t>& scaled, const BatchSizes& sizes,
                    int64_t batch) {
  const bool alone = scaled.empty();
  bool changed = false;
  for (TracedArgument& argument : arguments)
    for (TracedTensor& tensor : argument.tensors) {
      if (tensor.shape.size() != 1) continue;
      const int64_t size = tensor.shape[0];
      if (!(alone ? counts_samples(sizes, size) && !is_side_of_weight(sizes, size)
                  : scaled.contains(size)))
        continue;
      scale(tensor, 0, sizes.batch, batch);
      changed = true;
    }
  return changed;
}

/// The dtype in which products, convolutions and attention take most of their time.
std::optional<DType> products_dtype(const std::vector<OperatorGroup>& groups) {
  std::map<DType, int64_t> time;
  for (const OperatorGroup& group : groups)
    for (const Kernel& kernel : group.work.kernels)
      if (kernel.is<Gemm>() || kernel.is<Convolution>() || kernel.is<Attention>())
        time[kernel.dtype] += group.total_ns;
  const auto most = std::max_element(
      time.begin(), time.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == time.end() ? std::nullopt : std::optional<DType>(most->first);
}

/// fp32 of the units for tf32 is stored as fp32.
DType stored_as(DType dtype) { return dtype == DType::kTf32 ? DType::kFp32 : dtype; }

void change_dtype(Arguments& arguments, CallHints& hints, DType from, DType to) {
  for (TracedArgument& argument : arguments)
    for (TracedTensor& tensor : argument.tensors)
      if (tensor.dtype == stored_as(from)) tensor.dtype = stored_as(to);
  if (hints.dtype == stored_as(from)) hints.dtype = stored_as(to);
  hints.tf32 = to == DType::kTf32;
}

}  // namespace

BatchSizes batch_sizes(const ProfilerTrace& trace, const std::vector<OperatorGroup>& groups) {
  std::vector<std::pair<std::string_view, Arguments>> calls;
  std::vector<const OperatorGroup*> of;
  for (const OperatorGroup& group : groups) {
    if (group.work.kernels.empty()) continue;
    const OperatorCall& call = trace.calls[static_cast<size_t>(group.call)];
    calls.emplace_back(without_aten(call.name), arguments_of(call));
    of.push_back(&group);
  }
  BatchSizes sizes{.batch = found_batch(calls, of)};
  if (sizes.batch < 1) return sizes;
  sizes.rows.insert(sizes.batch);
  for (const auto& [name, arguments] : calls)
    for (size_t place = 0; place < arguments.size(); ++place) {
      const TracedTensor* tensor = tensor_at(arguments, place);
      if (tensor != nullptr && tensor->shape.size() > 2 && tensor->shape[0] == sizes.batch &&
          static_cast<int>(place) != weight_place(name))
        add_rows(sizes.rows, tensor->shape);
    }
  for (const auto& [name, arguments] : calls)
    add_weights(sizes.weights, name, arguments, sizes.rows);
  return sizes;
}

BatchEffect change_batch(std::string_view name, Arguments& arguments, const BatchSizes& sizes,
                         int64_t batch) {
  if (is_of_parameters(name)) return BatchEffect::kNone;
  if (const int place = product_place(name); place >= 0)
    return change_product(static_cast<size_t>(place), arguments, sizes, batch);
  const Shape widest = widest_shape(name, arguments);
  std::set<int64_t> scaled;
  bool unknown = false, weights = false;
  for (size_t place = 0; place < arguments.size(); ++place) {
    if (static_cast<int>(place) == weight_place(name)) continue;
    for (TracedTensor& tensor : arguments[place].tensors) {
      if (tensor.shape.size() < 2) continue;
      // One of fewer dimensions is repeated over the batch, unless it begins with it.
      if (tensor.shape.size() < widest.size() && tensor.shape[0] != widest[0]) continue;
      const BatchEffect effect = effect_on(tensor, sizes);
      if (effect == BatchEffect::kScaled) {
        scaled.insert(tensor.shape[0]);
        scale(tensor, 0, sizes.batch, batch);
      }
      unknown =
          unknown || (effect == BatchEffect::kUnknown && sizes.rows.contains(tensor.shape[0]));
      weights = weights || effect == BatchEffect::kNone;
    }
  }
  if (unknown) return BatchEffect::kUnknown;
  if (!scaled.empty() || widest.size() == 1)
    if (change_vectors(arguments, scaled, sizes, batch)) return BatchEffect::kScaled;
  if (!scaled.empty()) return BatchEffect::kScaled;
  return weights || widest.size() < 2 ? BatchEffect::kNone : BatchEffect::kUnknown;
}

ChangedWork changed_work(const ProfilerTrace& trace, const std::vector<OperatorGroup>& groups,
                         const WorkChange& change, const std::string& name) {
  ChangedWork changed{.groups = groups, .kept = std::vector<bool>(groups.size(), false)};
  BatchSizes sizes;
  if (change.batch_factor != 1) {
    sizes = batch_sizes(trace, groups);
    if (sizes.batch < 1)
      fail_input(printable(name), "no operator shows a batch: `batch` cannot change it");
    const double batch = static_cast<double>(sizes.batch) * change.batch_factor;
    if (batch < 1 || batch > 1e9 || batch != std::floor(batch))
      fail_input(printable(name),
                 fmt::format("its batch is {}: {} times that is no whole number of samples",
                             sizes.batch, change.batch_factor));
    changed.traced_batch = sizes.batch;
    changed.batch = static_cast<int64_t>(batch);
  }
  const std::optional<DType> from = products_dtype(groups);
  const DType to = change.dtype.empty() ? DType::kFp32 : parse_dtype(change.dtype, "`dtype`");
  if (!change.dtype.empty()) {
    if (!from) fail_input(printable(name), "no product states a dtype: `dtype` cannot change it");
    changed.traced_dtype = std::string(dtype_name(*from));
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    OperatorGroup& group = changed.groups[i];
    changed.kept[i] = group.work.kernels.empty();
    if (changed.kept[i]) continue;
    const OperatorCall& call = trace.calls[static_cast<size_t>(group.call)];
    Arguments arguments = arguments_of(call);
    CallHints hints = hints_of(trace.names[group.kernel]);
    const std::string_view op = without_aten(call.name);
    if (changed.batch > 0)
      changed.kept[i] =
          change_batch(op, arguments, sizes, changed.batch) == BatchEffect::kUnknown ||
          !are_possible(arguments);
    if (changed.kept[i]) arguments = arguments_of(call);
    if (!change.dtype.empty()) change_dtype(arguments, hints, *from, to);
    if (std::optional<CallWork> work = work_of(op, arguments, hints))
      group.work = std::move(*work);
    else
      changed.kept[i] = true;
  }
  return changed;
}

}  // namespace tilecast
