#include "command/sources.h"

#include <fmt/format.h>

#include "base/number.h"
#include "base/text.h"
#include "command/member.h"
#include "tilecast/error.h"

namespace tilecast {

ModelRef ModelSource::load() const { return read ? *read : load_model_ref(name); }

GpuRef GpuSource::load() const { return read ? *read : load_gpu_ref(name); }

GpuRef GpuSource::load_or_of(const std::string& cluster) const {
  if (read && cluster.empty()) return *read;
  return load_gpu_or_cluster(read ? read->id() : name, cluster);
}

std::shared_ptr<const Forecaster> ForecasterSource::load() const {
  return read ? read : std::make_shared<const Forecaster>(weights, calibration);
}

GpuSource gpu_source(const GivenValue& value) {
  if (!value.gpus.empty()) return {.name = "", .read = value.gpus.back()};
  return {.name = value.texts.back(), .read = {}};
}

std::vector<GpuSource> gpu_sources(const GivenValue& value) {
  std::vector<GpuSource> sources;
  for (const GpuRef& gpu : value.gpus) sources.push_back({.name = "", .read = gpu});
  if (!sources.empty()) return sources;
  for (const std::string& name : listed(value)) sources.push_back({.name = name, .read = {}});
  return sources;
}

std::vector<std::string> listed(const GivenValue& value) {
  std::vector<std::string> all;
  for (const std::string& text : value.texts) {
    for (std::string& part : split(text, ',')) all.push_back(std::move(part));
  }
  return all;
}

GivenOption given_option(const CommandOption& option, const GivenValue& value) {
  return {option.key(), join(value.texts, ",")};
}

namespace {

[[noreturn]] void refuse(const CommandOption& option, const std::string& expected,
                         const std::string& text) {
  throw OptionError(
      fmt::format("`{}`: expected {}, found '{}'", option.key(), expected, shown_name(text)));
}

}  // namespace

std::string internal::without_unit_of_bytes(std::string text) {
  if (text.size() > 1 && text.back() == 'B') text.pop_back();
  return text;
}

const std::string& internal::last_text(const CommandOption& option, const GivenValue& value) {
  if (value.texts.empty()) refuse(option, "a name or a path", "another object");
  return value.texts.back();
}

int64_t whole_of(const CommandOption& option, const std::string& text) {
  const std::optional<int64_t> value = parse_whole(text);
  if (value && *value >= option.min && *value <= option.max) return *value;
  refuse(option, fmt::format("a whole number from {} to {}", option.min, option.max), text);
}

double share_of(const CommandOption& option, const std::string& text) {
  const std::optional<double> value = parse_number<double>(text);
  const bool zero = option.min == 0;
  if (value && (zero ? *value >= 0 : *value > 0) && *value <= 1) return *value;
  refuse(option, zero ? "a number from 0 to 1" : "a number above 0 and at most 1", text);
}

size_t word_of(const CommandOption& option, const std::string& text,
               const std::vector<std::string>& words) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  throw OptionError(fmt::format("`{}`: unknown value '{}'; known: {}", option.key(),
                                shown_name(text), join(words, ", ")));
}

}  // namespace tilecast
