#include "importers/onnx/einsum.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/text.h"

namespace tilecast {

EinsumTerms parse_einsum(const OnnxCall& call) {
  std::string equation = call.text("equation", "");
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  EinsumTerms terms;
  const std::string left = equation.substr(0, arrow);
  terms.inputs = split(left, ',');
  const auto refuse = [&](const std::string& why) {
    call.fail(fmt::format("equation '{}': {}", shown_name(equation), why));
  };
  if (call.input_count() == 0) call.fail("it has no inputs, expected one or more");
  if (terms.inputs.size() != call.input_count())
    refuse(
        fmt::format("{} operands, but the node has {}", terms.inputs.size(), call.input_count()));
  // Dimensions of "..." get letters that equations do not use.
  constexpr char kFirstDots = '0';
  constexpr size_t kMostDots = 10;
  std::string dots;
  for (size_t i = 0; i < terms.inputs.size(); ++i) {
    std::string& term = terms.inputs[i];
    const size_t rank = call.shape(i).size();
    if (const size_t at = term.find("..."); at != std::string::npos) {
      const size_t named = term.size() - 3;
      if (rank < named || rank - named > kMostDots) refuse("an operand has too few dimensions");
      std::string own;
      for (size_t d = 0; d < rank - named; ++d)
        own += static_cast<char>(kFirstDots + static_cast<char>(kMostDots - (rank - named) + d));
      if (own.size() > dots.size()) dots = own;
      term.replace(at, 3, own);
    }
    if (term.size() != rank) refuse(fmt::format("operand {} has {} dimensions", i, rank));
    for (const char c : term) {
      if (!is_letter_or_digit(c)) refuse("expected letters");
      if (std::count(term.begin(), term.end(), c) > 1) refuse("a letter is repeated in an operand");
    }
  }
  if (arrow != std::string::npos) {
    terms.output = equation.substr(arrow + 2);
    if (const size_t at = terms.output.find("..."); at != std::string::npos)
      terms.output.replace(at, 3, dots);
  } else {
    terms.output = dots;
    const std::string all = join(terms.inputs, "");
    std::string once;
    for (const char c : all) {
      if (std::count(all.begin(), all.end(), c) == 1 && dots.find(c) == std::string::npos)
        once += c;
    }
    std::sort(once.begin(), once.end());
    terms.output += once;
  }
  for (const char c : terms.output) {
    if (join(terms.inputs, "").find(c) == std::string::npos ||
        std::count(terms.output.begin(), terms.output.end(), c) > 1)
      refuse("the result has a letter that no operand has, or one twice");
  }
  return terms;
}

}  // namespace tilecast
