#include "ops/notation.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/ascii.h"
#include "base/text.h"
#include "ops/builder.h"
#include "ops/op_def.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Reads the tokens of one line.
class Cursor {
 public:
  Cursor(std::string_view line, std::string where) : rest_(line), where_(std::move(where)) {
    skip();
  }

  bool done() const { return rest_.empty(); }
  bool peek(char c) const { return !rest_.empty() && rest_.front() == c; }

  [[noreturn]] void fail(const std::string& expected) const {
    const std::string found =
        rest_.empty() ? "the end of the line" : fmt::format("'{}'", shown_name(rest_, 20));
    throw Error(ErrorKind::kInput,
                fmt::format("{}: expected {}, found {}", where_, expected, found));
  }

  void expect(std::string_view token) {
    if (!rest_.starts_with(token)) fail(fmt::format("'{}'", token));
    rest_.remove_prefix(token.size());
    skip();
  }

  bool accept(char c) {
    if (!peek(c)) return false;
    rest_.remove_prefix(1);
    skip();
    return true;
  }

  std::string word(const std::string& what) {
    size_t n = 0;
    while (n < rest_.size() && (is_letter_or_digit(rest_[n]) || rest_[n] == '_' || rest_[n] == '.'))
      ++n;
    if (n == 0) fail(what);
    std::string result(rest_.substr(0, n));
    rest_.remove_prefix(n);
    skip();
    return result;
  }

  /// Text up to a comma, a closing brace or a blank: "-1", "1e-5", "bf16".
  std::string value(const std::string& what) {
    const size_t n = std::min(rest_.find_first_of(",} \t"), rest_.size());
    if (n == 0) fail(what);
    std::string result(rest_.substr(0, n));
    rest_.remove_prefix(n);
    skip();
    return result;
  }

  int64_t integer() {
    int64_t value = 0;
    const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (code != std::errc()) fail("a whole number that fits in 64 bits");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    skip();
    return value;
  }

  /// "[1, 2]" or "3"
  std::vector<int64_t> integers() {
    if (!accept('[')) return {integer()};
    std::vector<int64_t> values;
    while (!accept(']')) {
      values.push_back(integer());
      if (!peek(']')) expect(",");
    }
    return values;
  }

  std::string quoted() {
    expect("\"");
    const size_t end = rest_.find('"');
    if (end == std::string_view::npos) fail("a closing quote");
    std::string result = shown_name(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    skip();
    return result;
  }

 private:
  void skip() {
    while (!rest_.empty() && is_white(rest_.front())) rest_.remove_prefix(1);
  }

  std::string_view rest_;
  std::string where_;
};

/// The role with this word, if what is described can have it.
Role role_named(const std::string& word, Bearer bearer, const std::string& where) {
  std::vector<std::string> known;
  for (const RoleInfo& info : roles()) {
    if (!role_fits(info.role, bearer)) continue;
    if (info.word == word) return info.role;
    known.emplace_back(info.word);
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{}: expected a role ({}), found '{}'{}", where, join(known, ", "),
                          shown_name(word), did_you_mean(word, known)));
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& where)
      : text_(text), where_(where), builder_(graph_) {}

  Graph parse() {
    int line_number = 0;
    for (const std::string& raw : split(text_, '\n')) {
      ++line_number;
      std::string_view line = raw;
      line = trim(line.substr(0, line.find('#')));
      if (line.empty()) continue;
      line_ = fmt::format("{}:{}", where_, line_number);
      Cursor cursor(line, line_);
      try {
        statement(cursor);
      } catch (const Error& error) {
        const std::string message = error.what();
        if (message.starts_with(line_)) throw;
        throw Error(error.kind(), line_ + ": " + message);
      }
    }
    if (graph_.nodes.empty())
      throw Error(ErrorKind::kInput, where_ + ": the graph has no operator");
    if (graph_.outputs.empty()) graph_.outputs = {graph_.nodes.back().outputs.front()};
    return std::move(graph_);
  }

 private:
  void statement(Cursor& cursor) {
    const std::string first = cursor.word("a statement");
    if (cursor.peek('=') || cursor.peek(',')) return node(first, cursor);
    if (first == "graph") {
      graph_.name = cursor.word("a name");
    } else if (first == "input" || first == "weight" || first == "buffer" || first == "gradient") {
      declaration(first, cursor);
    } else if (first == "segment") {
      segment(cursor);
    } else if (first == "phase") {
      builder_.set_phase(phase(cursor.word("a phase")));
    } else if (first == "carry") {
      const TensorId initial = lookup(cursor.word("a tensor"));
      cursor.expect("->");
      carry(initial, lookup(cursor.word("a tensor")));
    } else if (first == "output") {
      graph_.outputs.push_back(lookup(cursor.word("a tensor")));
    } else {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: unknown statement '{}'{}", line_, shown_name(first),
                              did_you_mean(first, {"graph", "input", "weight", "buffer", "gradient",
                                                   "segment", "phase", "carry", "output"})));
    }
    if (!cursor.done()) cursor.fail("the end of the line");
  }

  void declaration(const std::string& kind, Cursor& cursor) {
    const std::string name = cursor.word("a name");
    cursor.expect(":");
    const DType dtype = parse_dtype(cursor.word("a dtype"), line_);
    Shape shape = cursor.integers();
    for (int64_t dimension : shape) {
      if (dimension < 1)
        throw Error(ErrorKind::kInput,
                    fmt::format("{}: dimensions must be at least 1, found {}", line_, dimension));
    }
    element_count(shape);
    TensorId id = -1;
    if (kind == "input") {
      id = builder_.input(name, shape, dtype);
    } else {
      id = builder_.tensor({.name = name,
                            .shape = shape,
                            .dtype = dtype,
                            .kind = kind == "weight"   ? TensorKind::kWeight
                                    : kind == "buffer" ? TensorKind::kBuffer
                                                       : TensorKind::kGradient,
                            .segment = builder_.current_segment()});
      if (kind == "weight" && cursor.peek('f')) {
        cursor.expect("frozen");
        graph_.tensor(id).frozen = true;
      }
    }
    if (cursor.peek('r') && (kind == "input" || kind == "weight"))
      graph_.tensor(id).role = role(cursor, kind == "input" ? Bearer::kInput : Bearer::kWeight);
    define(name, id);
  }

  /// "role=residual"
  Role role(Cursor& cursor, Bearer bearer) const {
    cursor.expect("role");
    cursor.expect("=");
    return role_named(cursor.word("a role"), bearer, line_);
  }

  Phase phase(const std::string& name) const {
    std::vector<std::string> known;
    for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kOptimizer}) {
      known.emplace_back(phase_name(phase));
      if (known.back() == name) return phase;
    }
    throw Error(ErrorKind::kInput,
                fmt::format("{}: expected a phase ({}), found '{}'{}", line_, join(known, ", "),
                            shown_name(name), did_you_mean(name, known)));
  }

  void segment(Cursor& cursor) {
    const std::string name = cursor.word("a name");
    cursor.expect("x");
    const int64_t repeat = cursor.integer();
    if (repeat < 1 || repeat > 100000)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: a segment repeats 1 to 100000 times, found {}", line_, repeat));
    builder_.begin_segment(name, repeat);
    if (cursor.peek('r')) graph_.segments.back().role = role(cursor, Bearer::kSegment);
  }

  void carry(TensorId initial, TensorId next) {
    const bool inside = builder_.current_segment() >= 0 &&
                        graph_.tensor(next).segment == builder_.current_segment() &&
                        graph_.tensor(initial).segment != builder_.current_segment() &&
                        graph_.tensor(next).kind == TensorKind::kActivation;
    if (!inside)
      throw Error(ErrorKind::kInput,
                  line_ + ": carry goes from a tensor outside the segment to one made inside it");
    if (graph_.tensor(initial).shape != graph_.tensor(next).shape)
      throw Error(ErrorKind::kInput, fmt::format("{}: carry between different shapes: {} and {}",
                                                 line_, format_shape(graph_.tensor(initial).shape),
                                                 format_shape(graph_.tensor(next).shape)));
    builder_.carry(initial, next);
  }

  void node(const std::string& first, Cursor& cursor) {
    std::vector<std::string> names = {first};
    while (cursor.accept(',')) names.push_back(cursor.word("a name"));
    cursor.expect("=");
    const std::string op = cursor.word("an operator");
    std::vector<TensorId> inputs;
    cursor.expect("(");
    while (!cursor.accept(')')) {
      inputs.push_back(lookup(cursor.word("a tensor")));
      if (!cursor.peek(')')) cursor.expect(",");
    }
    std::vector<Attribute> attributes;
    Role role = Role::kNone;
    if (cursor.accept('{')) {
      while (!cursor.accept('}')) {
        const std::string attribute = cursor.word("an attribute");
        if (attribute == "role") {
          cursor.expect("=");
          role = role_of_node(cursor.word("a role"), op);
          if (!cursor.peek('}')) cursor.expect(",");
          continue;
        }
        const AttributeDef& def = attribute_named(attribute, op_def(require_op(op)));
        cursor.expect("=");
        attributes.push_back({std::string(def.name), attribute_value(def, cursor)});
        if (!cursor.peek('}')) cursor.expect(",");
      }
    }
    TensorId target = -1;
    if (cursor.peek('i')) {
      cursor.expect("into");
      target = lookup(cursor.word("a tensor"));
    }
    const std::string name = cursor.peek('"') ? cursor.quoted() : names.front();
    if (!cursor.done()) cursor.fail("the end of the line");
    if (graph_.segments.empty()) builder_.begin_segment("main", 1);
    const RoleScope scope(builder_, role);
    const std::vector<TensorId> outputs = builder_.add(op, inputs, name, attributes);
    if (names.size() > outputs.size())
      throw Error(ErrorKind::kInput, fmt::format("{}: {} has {} outputs, {} are named", line_, op,
                                                 outputs.size(), names.size()));
    for (size_t i = 0; i < names.size(); ++i) define(names[i], outputs[i]);
    if (target >= 0) graph_.tensor(outputs[0]).storage = graph_.tensor(target).storage;
  }

  Role role_of_node(const std::string& word, const std::string& op) const {
    const Role role = role_named(word, Bearer::kNode, line_);
    if (!role_fits_op(role, op_def(require_op(op)).name))
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: {} cannot have the role '{}'", line_, op, word));
    return role;
  }

  /// The attribute of an operator by its name or its old name.
  const AttributeDef& attribute_named(const std::string& name, const OpDef& op) const {
    for (const AttributeDef& def : op.attributes) {
      if (def.name == name || (!def.old_name.empty() && def.old_name == name)) return def;
    }
    throw Error(ErrorKind::kInput, fmt::format("{}: {}: unknown attribute '{}'; known: {}", line_,
                                               op.name, shown_name(name), attribute_names(op)));
  }

  /// A value of the type that the operator declares.
  AttributeValue attribute_value(const AttributeDef& def, Cursor& cursor) {
    if (def.type == AttributeType::kIntegers) return cursor.integers();
    if (def.type == AttributeType::kText) return cursor.quoted();
    return parse_value(def.type, cursor.value(std::string(attribute_type_name(def.type))),
                       fmt::format("{}: attribute '{}'", line_, def.name));
  }

  void define(const std::string& name, TensorId id) {
    if (!names_.emplace(name, id).second)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: '{}' is defined twice", line_, shown_name(name)));
    graph_.tensor(id).name = name;
  }

  TensorId lookup(const std::string& name) {
    const auto it = names_.find(name);
    if (it != names_.end()) return it->second;
    std::vector<std::string> known;
    for (const auto& [key, id] : names_) known.push_back(key);
    throw Error(ErrorKind::kInput, fmt::format("{}: unknown tensor '{}'{}", line_, shown_name(name),
                                               did_you_mean(name, known)));
  }

  std::string_view text_;
  std::string where_;
  std::string line_;
  Graph graph_;
  GraphBuilder builder_;
  std::map<std::string, TensorId> names_;
};

}  // namespace

Graph parse_graph(std::string_view text, const std::string& where) {
  return Parser(text, where).parse();
}

}  // namespace tilecast
