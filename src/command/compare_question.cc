// Two forecasts side by side. Each is a model, a GPU, the JSON of an earlier forecast, or the
// options of a request in a JSON file; the rest comes from the options of the question.

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "command/job_source.h"
#include "command/question.h"
#include "command/shared_options.h"
#include "many/two_forecasts.h"
#include "schema/json.h"
#include "tilecast/error.h"
#include "tilecast/profile.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

struct CompareQuestion {
  std::string a, b;
  ModelSource model;
  GpuSource gpu;
  std::vector<GivenOption> words;
  ForecasterSource forecaster;
};

CommandOption side_argument(const std::string& name, SetValue set) {
  return {.names = name,
          .help =
              "a model, a GPU, a forecast (--format json), or a JSON file of a request's "
              "options: {\"model\": \"gpt2\", \"gpu\": \"H100\", \"batch\": 4}; or the content of "
              "one; or both "
              "traces of a profiler",
          .required = true,
          .set = set};
}

std::vector<OptionGroup> compare_groups() {
  CommandOption gpu = gpu_option(into<&CompareQuestion::gpu>());
  gpu.required = false;  // A and B may be GPUs
  gpu.help += "; of both, where A and B state none";
  CommandOption model = {.names = "--model",
                         .value = "MODEL",
                         .help = "of both, where A and B state none",
                         .kind = ValueKind::kModel,
                         .set = into<&CompareQuestion::model>()};
  std::vector<OptionGroup> groups =
      request_groups<CompareQuestion>({model, gpu}, into_request<&CompareQuestion::words>());
  groups.insert(groups.begin(), {"Arguments",
                                 {side_argument("A", into<&CompareQuestion::a>()),
                                  side_argument("B", into<&CompareQuestion::b>())}});
  return groups;
}

/// What one side states itself.
struct Side {
  std::string forecast;  ///< JSON; "": it is yet to be made
  ModelSource model;
  GpuSource gpu;
  std::vector<GivenOption> words;
};

bool names_gpu(const std::string& name) {
  try {
    load_gpu_ref(name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The options of a file override those of the question. A model and a GPU may be content.
Side side_of_options(const JsonObject& file, Side side) {
  for (const auto& item : file.json().items()) {
    if (item.key() == "model" && item.value().is_object()) {
      side.model = {.name = "", .read = model_from_text(item.value().dump(), file.where())};
      continue;
    }
    if (item.key() == "gpu" && item.value().is_object()) {
      side.gpu = {.name = "", .read = gpu_from_text(item.value().dump(), file.where())};
      continue;
    }
    const std::string text = option_text(file, item.key());
    if (item.key() == "model") {
      side.model = {.name = text, .read = {}};
      continue;
    }
    if (item.key() == "gpu") {
      side.gpu = {.name = text, .read = {}};
      continue;
    }
    const std::string name = key_of(item.key());
    std::erase_if(side.words, [&](const GivenOption& given) { return given.name == name; });
    side.words.push_back({name, text});
  }
  return side;
}

/// Whether a JSON object states the options of a request, and is no model or device.
bool states_options(const Json& json) {
  const auto is_known = [](const std::string& keyword) {
    const std::string key = key_of(keyword);
    const auto& options = request_options();
    return key == "model" || key == "gpu" ||
           std::any_of(options.begin(), options.end(),
                       [&](const OptionDef& option) { return option.name == key; });
  };
  if (!json.is_object() || json.empty()) return false;
  for (const auto& item : json.items())
    if (!is_known(item.key())) return false;
  return true;
}

/// Whether a side is content in place of a name.
bool is_content(const std::string& asked) { return asked.starts_with('{'); }

/// `where` names the side in messages.
Side side_of(const std::string& asked, const std::string& where, const CompareQuestion& common) {
  Side side{.forecast = "", .model = common.model, .gpu = common.gpu, .words = common.words};
  if (is_content(asked) || (is_path(asked) && asked.ends_with(".json"))) {
    const std::string text = is_content(asked) ? asked : read_file(asked);
    const Json json = parse_json(text, where);
    if (is_forecast(json)) {
      side.forecast = text;
      return side;
    }
    if (states_options(json)) return side_of_options(JsonObject(json, where), std::move(side));
    if (is_content(asked)) {
      if (json.contains("model_type") || json.contains("architectures"))
        side.model = {.name = "", .read = model_from_text(text, where)};
      else
        side.gpu = {.name = "", .read = gpu_from_text(text, where)};
      return side;
    }
  }
  if (names_gpu(asked))
    side.gpu = {.name = asked, .read = {}};
  else
    side.model = {.name = asked, .read = {}};
  return side;
}

std::string forecast_json(const std::string& name, const Side& side,
                          const CompareQuestion& question) {
  if (!side.forecast.empty()) return side.forecast;
  const Request request = make_request(side.words);
  if (!side.model.read && side.model.name.empty())
    throw OptionError(fmt::format("'{}' states no model: give it with `model`", printable(name)));
  // A file of another kind is no model: that is what is wrong with it.
  if (is_file(name)) side.model.load();
  if (!side.gpu.given() && request.parallel.cluster.empty())
    throw OptionError(
        fmt::format("'{}' states no GPU: give it with `gpu` or `cluster`", printable(name)));
  const Result result = ask(*question.forecaster.load(), side.model.load(),
                            side.gpu.load_or_of(request.parallel.cluster), request);
  return std::visit([](const auto& forecast) { return to_json(forecast); }, result);
}

bool is_profile(const std::string& name) { return !is_content(name) && is_profiler_trace(name); }

Reply answer_compare(CompareQuestion&& asked, const Given&, const Asking&) {
  if (is_profile(asked.a) && is_profile(asked.b)) {
    if (asked.gpu.given() || asked.model.read || !asked.model.name.empty() || !asked.words.empty())
      throw OptionError(
          "two traces of a profiler are compared as they are: `gpu`, `model` and "
          "options of a request have no effect on them");
    TraceReport report = compare_traces(*asked.forecaster.load(), asked.a, asked.b);
    std::vector<std::string> warnings = report.warnings;
    return {.answer = std::move(report), .warnings = std::move(warnings)};
  }
  asked.forecaster.read = asked.forecaster.load();  // once for both
  NamedForecast sides[] = {{is_content(asked.a) ? "a" : printable(asked.a), ""},
                           {is_content(asked.b) ? "b" : printable(asked.b), ""}};
  for (NamedForecast& side : sides) {
    const std::string& text = &side == sides ? asked.a : asked.b;
    side.json =
        forecast_json(is_content(text) ? side.name : text, side_of(text, side.name, asked), asked);
  }
  return {.answer = compare_forecasts(sides[0], sides[1])};
}

}  // namespace

Question compare_question() {
  return question_of<CompareQuestion, compare_groups, answer_compare>(
      "compare", "Two models, GPUs, requests or earlier forecasts side by side",
      {{"", "Comparison"}});
}

}  // namespace tilecast
