// From options as words to a request.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tilecast/request.h"

namespace tilecast {
namespace {

using GivenOptions = std::span<const GivenOption>;

/// The text of an option; nullptr if it was not given.
const std::string* find_text(GivenOptions given, const std::string& name) {
  const auto found = std::find_if(given.begin(), given.end(),
                                  [&](const GivenOption& option) { return option.name == name; });
  return found == given.end() ? nullptr : &found->text;
}

/// The kind of request, from the options for text generation.
RequestKind kind_of(GivenOptions given) {
  if (find_text(given, "prompt") == nullptr && find_text(given, "trace") == nullptr)
    return RequestKind::kPass;
  // A load is that of a server, whether it is said or not.
  const bool load = find_text(given, "rate") != nullptr ||
                    find_text(given, "concurrency") != nullptr ||
                    find_text(given, "trace") != nullptr;
  const std::string* schedule = find_text(given, "schedule");
  const bool serve = schedule == nullptr ? load : *schedule == "continuous";
  return serve ? RequestKind::kServe : RequestKind::kGenerate;
}

void check_excludes(GivenOptions given, const OptionDef& option) {
  for (const std::string& other : option.excludes) {
    if (find_text(given, other) != nullptr)
      throw OptionError(fmt::format("`{}` and `{}` are mutually exclusive", option.name, other));
  }
}

/// Why requests of this kind do not have the option; returns if its default was given, which all
/// requests accept.
void check_other_kind(GivenOptions given, const GivenOption& asked, RequestKind kind) {
  std::vector<std::string> names;
  for (const OptionDef& option : request_options()) {
    names.push_back(option.name);
    if (option.name != asked.name) continue;
    if (kind == RequestKind::kGenerate && option.applies_to(RequestKind::kServe)) {
      check_excludes(given, option);
      if (asked.text == option.default_value) return;
    }
    throw OptionError(why_not(option, kind));
  }
  throw OptionError(fmt::format("unknown option '{}'{}", shown_name(asked.name),
                                did_you_mean(asked.name, names)));
}

void set_given(Request& request, GivenOptions given, const GivenOption& asked) {
  const OptionDef* option = find_option(asked.name, request.kind);
  if (option == nullptr) return check_other_kind(given, asked, request.kind);
  check_excludes(given, *option);
  try {
    set_option(request, *option, asked.text);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInput && option->access.type != OptionType::kFile)
      throw OptionError(error.what());
    throw;
  }
}

}  // namespace

Request make_request(GivenOptions given) {
  Request request{.kind = kind_of(given)};
  for (const GivenOption& option : given) set_given(request, given, option);
  try {
    check_request(request);
  } catch (const Error& error) {
    // The options alone show the error, unless a trace is involved.
    if (error.kind() == ErrorKind::kInput && request.load.trace.empty())
      throw OptionError(error.what());
    throw;
  }
  return request;
}

}  // namespace tilecast
