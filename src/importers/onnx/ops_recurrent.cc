// LSTM, GRU and RNN: x [s, b, in] (layout 1: [b, s, in]), y [s, directions, b, hidden].

#include <fmt/format.h>

#include "importers/onnx/shapes.h"

namespace tilecast {
namespace {

int64_t gates_of(const std::string& op) { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }

void translate_recurrent(OnnxCall& call) {
  const bool batch_first = call.integer("layout", 0) != 0;
  const std::string& op = call.node().op;
  const bool lstm = op == "LSTM";
  call.name_after(1);
  TensorId x = call.tensor(0);
  if (call.shape(0).size() != 3 || call.shape(2).size() != 3) call.fail("expected [s, b, in]");
  if (batch_first) x = call.op("copy", {call.transpose(x, {1, 0, 2})});
  std::vector<TensorId> inputs = {x, call.tensor(1), call.tensor(2)};
  // Biases; lengths of sequences (input 4) change no work; first states.
  for (const size_t i : {size_t{3}, size_t{5}, size_t{6}}) {
    if (call.has(i) && (i != 6 || lstm)) inputs.push_back(call.tensor(i));
  }
  const std::vector<TensorId> results = call.add("recurrent", inputs, {{"gates", gates_of(op)}});
  const Shape s = call.shape_of(results[0]), state = call.shape_of(results[1]);
  const TensorId split = call.reshape(results[0], {s[0], s[1], state[0], state[2]});
  call.set(0, call.transpose(split, batch_first ? Shape{1, 0, 2, 3} : Shape{0, 2, 1, 3}));
  for (size_t i = 1; i < results.size(); ++i)
    call.set(i, batch_first ? call.transpose(results[i], {1, 0, 2}) : results[i]);
}

}  // namespace

std::vector<OnnxOp> onnx_recurrent_ops() {
  return {
      {"LSTM", translate_recurrent}, {"GRU", translate_recurrent}, {"RNN", translate_recurrent}};
}

}  // namespace tilecast
