// Command lines of MIOpenDriver, as `MIOPEN_ENABLE_LOGGING_CMD=1` and tuning lists have them:
// ./bin/MIOpenDriver convfp16 -n 32 -c 256 -H 56 -W 56 -k 64 -y 1 -x 1 -p 0 -q 0 -u 1 -v 1 -l 1
// -j 1 -m conv -g 1 -F 1 -t 1

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/number.h"
#include "base/text.h"
#include "tilecast/error.h"
#include "tuning/conv_problem.h"

namespace tilecast::tuning {
namespace {

struct Flag {
  std::string_view letter, word;
  int64_t ConvProblem::* member;
};

// MIOpen driver/conv_driver.hpp, AddCmdLineArgs.
constexpr std::array kFlags = {Flag{"-n", "--batchsize", &ConvProblem::n},
                               Flag{"-c", "--in_channels", &ConvProblem::c},
                               Flag{"-H", "--in_h", &ConvProblem::h},
                               Flag{"-W", "--in_w", &ConvProblem::w},
                               Flag{"-k", "--out_channels", &ConvProblem::k},
                               Flag{"-y", "--fil_h", &ConvProblem::r},
                               Flag{"-x", "--fil_w", &ConvProblem::s},
                               Flag{"-p", "--pad_h", &ConvProblem::pad_h},
                               Flag{"-q", "--pad_w", &ConvProblem::pad_w},
                               Flag{"-u", "--conv_stride_h", &ConvProblem::stride_h},
                               Flag{"-v", "--conv_stride_w", &ConvProblem::stride_w},
                               Flag{"-l", "--dilation_h", &ConvProblem::dil_h},
                               Flag{"-j", "--dilation_w", &ConvProblem::dil_w},
                               Flag{"-g", "--group_count", &ConvProblem::group}};

/// The driver's own defaults for what a line leaves out.
ConvProblem driver_defaults() {
  return {.n = 100, .c = 3, .h = 32, .w = 32, .k = 32, .r = 3, .s = 3};
}

std::optional<DType> dtype_of_command(std::string_view word) {
  if (word == "conv") return DType::kFp32;
  if (word == "convfp16") return DType::kFp16;
  if (word == "convbfp16") return DType::kBf16;
  if (word == "convint8") return DType::kInt8;
  return std::nullopt;
}

struct DriverLine {
  ConvProblem problem = driver_defaults();
  int64_t passes = 0;  ///< 0: all; else 1 forward, 2 gradient of x, 4 gradient of w, or their sum
  bool is_2d = true;
};

int64_t whole(std::string_view flag, const std::string& value, int64_t least,
              const std::string& where) {
  constexpr int64_t kMost = int64_t{1} << 24;
  const auto result = parse_number<int64_t>(value);
  if (!result || *result < least || *result > kMost)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: {} is '{}'; expected a whole number from {} to {}", where, flag,
                            shown_name(value), least, kMost));
  return *result;
}

void read_flag(DriverLine& line, const std::string& flag, const std::string& value,
               const std::string& where) {
  const auto known = std::find_if(kFlags.begin(), kFlags.end(), [&](const Flag& f) {
    return f.letter == flag || f.word == flag;
  });
  if (known != kFlags.end()) {
    const bool may_be_0 = flag == "-p" || flag == "-q" || flag.starts_with("--pad");
    line.problem.*known->member = whole(flag, value, may_be_0 ? 0 : 1, where);
  } else if (flag == "-F" || flag == "--forw") {
    line.passes = whole(flag, value, 0, where);
    if (line.passes > 7)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: {} is {}; expected 0 to 7", where, flag, line.passes));
  } else if (flag == "-m" || flag == "--mode") {
    if (value != "conv")
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format("{}: mode '{}'; no model knows transposed convolutions, expected conv", where,
                      shown_name(value)));
  } else if (flag == "-I" || flag == "--in_layout") {
    if (value != "NCHW" && value != "NHWC")
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}: layout '{}'; expected NCHW or NHWC", where, shown_name(value)));
    line.problem.channels_last = value == "NHWC";
  } else if (flag == "-b" || flag == "--bias") {
    if (value != "0")
      throw Error(ErrorKind::kUnsupported,
                  where + ": a bias of its own; no model knows such convolutions");
  } else if (flag == "-_" || flag == "--spatial_dim") {
    line.is_2d = value == "2";
  }
  // The rest is how the driver measures: iterations, verification, random data.
}

}  // namespace

std::vector<ConvProblem> parse_driver_line(std::string_view text, const std::string& where) {
  std::vector<std::string> words;
  for (const std::string& word : split(text, ' '))
    if (!word.empty()) words.emplace_back(trim(word));
  auto at = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word.ends_with("MIOpenDriver") || word.ends_with("MIOpenDriver.exe");
  });
  if (at == words.end()) return {};
  ++at;
  if (at == words.end()) return {};
  const std::optional<DType> dtype = dtype_of_command(*at);
  if (!dtype) return {};
  DriverLine line;
  line.problem.dtype = *dtype;
  for (++at; at != words.end(); ++at) {
    if (!at->starts_with('-')) continue;
    const size_t equals = at->find('=');
    if (at->starts_with("--") && equals != std::string::npos) {
      read_flag(line, at->substr(0, equals), at->substr(equals + 1), where);
      continue;
    }
    if (at + 1 == words.end())
      throw Error(ErrorKind::kInput, fmt::format("{}: {} has no value", where, shown_name(*at)));
    const std::string& flag = *at;
    read_flag(line, flag, *++at, where);
  }
  if (!line.is_2d) return {};
  complete_problem(line.problem, where);
  std::vector<ConvProblem> problems;
  for (int64_t pass = 0; pass < 3; ++pass) {
    if (line.passes != 0 && ((line.passes >> pass) & 1) == 0) continue;
    line.problem.pass = static_cast<ConvPass>(pass);
    problems.push_back(line.problem);
  }
  return problems;
}

std::vector<ConvProblem> parse_driver_log(std::string_view log, const std::string& where) {
  std::vector<ConvProblem> problems;
  size_t number = 0;
  for (const std::string& line : split(log, '\n')) {
    ++number;
    for (const ConvProblem& p : parse_driver_line(line, fmt::format("{}: line {}", where, number)))
      if (std::find(problems.begin(), problems.end(), p) == problems.end()) problems.push_back(p);
  }
  if (problems.empty())
    throw Error(ErrorKind::kInput,
                where +
                    ": no command line of MIOpenDriver with a 2-D convolution; expected lines "
                    "as 'MIOpenDriver conv -n 32 -c 256 -H 56 -W 56 -k 64 -y 1 -x 1 ... -F 1'");
  return problems;
}

}  // namespace tilecast::tuning
