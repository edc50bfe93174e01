// Every operator with attributes, sizes and dimensions near the ends of 64 bits: files have any
// number. Each gives an error of the input, or sizes that did not wrap; UndefinedBehaviorSanitizer,
// where it is on, looks at each operation.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/text.h"
#include "ops/gradient.h"
#include "ops/notation.h"
#include "ops/op_def.h"
#include "ops/sizes.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr int64_t kExtremes[] = {0,
                                 1,
                                 3,
                                 int64_t{1} << 31,
                                 (int64_t{1} << 32) + 1,
                                 int64_t{1} << 53,
                                 (int64_t{1} << 62) - 1,
                                 int64_t{1} << 62,
                                 std::numeric_limits<int64_t>::max(),
                                 -1,
                                 std::numeric_limits<int64_t>::min()};

/// Operands of an example, and its attributes as texts.
struct Example {
  std::vector<std::pair<std::string, std::string>> inputs;
  std::vector<std::pair<std::string, std::string>> attributes;
};

Example example_of(const OpDef& op) {
  Example example;
  std::string rest(op.example), attributes;
  if (const size_t brace = rest.find('{'); brace != std::string::npos) {
    attributes = rest.substr(brace + 1, rest.rfind('}') - brace - 1);
    rest.resize(brace);
  }
  for (size_t colon = rest.find(':'); colon != std::string::npos;) {
    const size_t space = rest.find_last_of(' ', colon);
    const size_t start = space == std::string::npos ? 0 : space + 1;
    const size_t end = rest.find(']', colon) + 1;
    example.inputs.emplace_back(rest.substr(start, colon - start),
                                rest.substr(colon + 1, end - colon - 1));
    colon = rest.find(':', end);
  }
  // Commas inside of lists and texts do not divide.
  int depth = 0;
  bool quoted = false;
  std::string part;
  for (const char c : attributes + ",") {
    if (c == '"') quoted = !quoted;
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || depth > 0 || quoted) {
      part += c;
      continue;
    }
    const size_t equals = part.find('=');
    if (equals != std::string::npos)
      example.attributes.emplace_back(trim(part.substr(0, equals)), part.substr(equals + 1));
    part.clear();
  }
  return example;
}

std::string text_of(const OpDef& op, const Example& example) {
  std::string text = "graph extremes\n";
  std::vector<std::string> names, attributes;
  for (const auto& [name, type] : example.inputs) {
    text += fmt::format("input {}:{}\n", name, type);
    names.push_back(name);
  }
  for (const auto& [name, value] : example.attributes)
    attributes.push_back(fmt::format("{}={}", name, value));
  return text + fmt::format("out = {}({}) {{{}}}\n", op.name, fmt::join(names, ", "),
                            fmt::join(attributes, ", "));
}

void expect_kernels(const std::vector<Kernel>& kernels, const std::string& what) {
  for (const Kernel& kernel : kernels) {
    ASSERT_GE(kernel.flops, 0) << what;
    ASSERT_GE(kernel.read_bytes, 0) << what;
    ASSERT_GE(kernel.write_bytes, 0) << what;
    for (const int64_t size : sizes_of(kernel)) ASSERT_GE(size, 0) << what;
  }
}

/// The operator's work, its gradients and what eager PyTorch makes of it.
void expect_sound(const OpDef& op, const std::string& text) {
  const auto attempt = [&](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::kInternal) << text << error.what();
    }
  };
  const auto all_kernels = [&](const Graph& graph) {
    for (const Tensor& tensor : graph.tensors) {
      for (const int64_t d : tensor.shape) ASSERT_GE(d, 0) << text;
    }
    for (const Node& node : graph.nodes) {
      if (op_def(node.op).work == nullptr) continue;
      std::vector<Kernel> kernels;
      lower_node(graph, node, kernels);
      expect_kernels(kernels, text);
    }
  };
  attempt([&] { all_kernels(parse_graph(text, "extremes")); });
  if (op.decompose != nullptr) {
    attempt([&] {
      Graph graph = parse_graph(text, "extremes");
      GraphBuilder b(graph);
      op.decompose(b, Node(graph.nodes.front()), {.training = true});
      all_kernels(graph);
    });
  }
  if (op.backward == nullptr || op.updates_in_backward) return;
  attempt([&] {
    Graph graph = parse_graph(text, "extremes");
    for (Tensor& tensor : graph.tensors) {
      if (tensor.kind == TensorKind::kInput && tensor.dtype == DType::kFp32)
        tensor.kind = TensorKind::kWeight;
    }
    GradientBuilder g(graph);
    g.mark_requires_grad();
    g.builder().begin_segment("backward", 1);
    const Node node = graph.nodes.front();
    for (const TensorId id : node.outputs) {
      const Tensor output = graph.tensor(id);
      g.set_gradient(id, g.builder().input("dy", output.shape, output.dtype));
    }
    op.backward(g, node);
    all_kernels(graph);
  });
}

class EveryOpAtItsLimits : public testing::TestWithParam<size_t> {};

/// The text with each whole number of it replaced, one at a time, and all that are equal together.
std::vector<std::string> replaced(const std::string& text, int64_t by) {
  std::vector<std::string> all;
  std::vector<std::pair<size_t, size_t>> numbers;
  for (size_t i = text.find('['); i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') continue;
    const size_t end = text.find_first_not_of("0123456789", i);
    numbers.emplace_back(i, end - i);
    i = end;
  }
  for (const auto& [at, length] : numbers)
    all.push_back(std::string(text).replace(at, length, fmt::format("{}", by)));
  return all;
}

TEST_P(EveryOpAtItsLimits, GivesAnErrorOrSizesThatDoNotWrap) {
  const OpDef& op = op_table()[GetParam()];
  const Example example = example_of(op);
  std::vector<Example> all;
  const auto with = [&](const AttributeDef& def, const std::string& value) {
    for (Example& other : std::vector<Example>(all)) {
      std::erase_if(other.attributes, [&](const auto& a) { return a.first == def.name; });
      other.attributes.emplace_back(def.name, value);
      all.push_back(other);
    }
  };
  // Each attribute at each extreme, alone and with all others at 2^31 or 2^62.
  for (const AttributeDef& def : op.attributes) {
    const bool list = def.type == AttributeType::kIntegers;
    if (!list && def.type != AttributeType::kInteger) continue;
    for (const int64_t extreme : kExtremes) {
      std::vector<std::string> values;
      if (!list) {
        values.push_back(fmt::format("{}", extreme));
      } else {
        for (size_t length = 1; length <= 4; ++length) {
          const std::vector<int64_t> same(length, extreme);
          values.push_back(fmt::format("[{}]", fmt::join(same, ", ")));
        }
        for (const auto& [name, value] : example.attributes) {
          if (name == def.name)
            for (const std::string& one : replaced(value, extreme)) values.push_back(one);
        }
      }
      for (const std::string& value : values) {
        all = {example};
        with(def, value);
        for (const AttributeDef& other : op.attributes) {
          if (other.type == AttributeType::kInteger && other.name != def.name && all.size() < 64)
            with(other, fmt::format("{}", std::min(other.max, int64_t{1} << 62)));
        }
        for (const Example& one : all) expect_sound(op, text_of(op, one));
        if (HasFatalFailure()) return;
      }
    }
  }
  // Each dimension of each input, alone and in all inputs that have it.
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    for (const int64_t extreme : kExtremes) {
      for (const std::string& type : replaced(example.inputs[i].second, extreme)) {
        Example one = example;
        one.inputs[i].second = type;
        expect_sound(op, text_of(op, one));
        for (auto& [name, value] : one.inputs) value = type;
        expect_sound(op, text_of(op, one));
        if (HasFatalFailure()) return;
      }
    }
  }
  // Sizes of single kernels, alone and two at a time.
  for (const SizeDef& size : op.sizes) {
    for (const SizeDef& other : op.sizes) {
      for (const int64_t extreme : kExtremes) {
        for (const int64_t second : {int64_t{1} << 31, int64_t{1} << 62}) {
          SizeList sizes = {{std::string(size.name), extreme}};
          if (&other != &size) sizes.push_back({std::string(other.name), second});
          const std::string what =
              fmt::format("{} {}={} {}={}", op.name, size.name, extreme, other.name, second);
          try {
            expect_kernels(kernels_of_sizes(op.name, DType::kFp32, sizes), what);
          } catch (const Error& error) {
            EXPECT_NE(error.kind(), ErrorKind::kInternal) << what << ": " << error.what();
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryOpAtItsLimits, testing::Range<size_t>(0, op_table().size()),
                         [](const auto& info) { return std::string(op_table()[info.param].name); });

}  // namespace
}  // namespace tilecast
