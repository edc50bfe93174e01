#include "command/job_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "command/option.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kInput, where + ": " + what);
}

double number_of(const std::string& where, const std::string& key, const std::string& text) {
  const std::optional<double> value = parse_number<double>(text);
  if (!value)
    refuse(where, fmt::format("{}: expected a number, found '{}'", key, shown_name(text)));
  return *value;
}

int64_t count_of(const std::string& where, const std::string& key, const std::string& text) {
  const std::optional<int64_t> value = parse_whole(text);
  if (!value)
    refuse(where, fmt::format("{}: expected a whole number, found '{}'", key, shown_name(text)));
  return *value;
}

/// What a job has beside the options of its request.
struct JobKey {
  std::string_view key;
  void (*set)(Job& job, const std::string& where, const std::string& key, const std::string& text);
};

constexpr std::array kJobKeys = {
    JobKey{"name", [](Job& job, const std::string&, const std::string&,
                      const std::string& text) { job.name = printable(text); }},
    JobKey{"loader-s",
           [](Job& job, const std::string& where, const std::string& key, const std::string& text) {
             job.bounds.loader_s = number_of(where, key, text);
           }},
    JobKey{"steps-per-s",
           [](Job& job, const std::string& where, const std::string& key, const std::string& text) {
             job.bounds.steps_per_s = number_of(where, key, text);
           }},
    JobKey{"prefetch",
           [](Job& job, const std::string& where, const std::string& key, const std::string& text) {
             job.bounds.prefetch = count_of(where, key, text);
           }},
    JobKey{"processes",
           [](Job& job, const std::string& where, const std::string& key, const std::string& text) {
             job.bounds.processes = count_of(where, key, text);
           }},
    JobKey{"slice", [](Job& job, const std::string&, const std::string&,
                       const std::string& text) { job.bounds.slice = text; }},
    JobKey{"mps-percent",
           [](Job& job, const std::string& where, const std::string& key, const std::string& text) {
             job.bounds.mps_share = number_of(where, key, text) / 100;
           }},
};

/// Words between white space; one in double quotes may hold it.
std::vector<std::string> words_of(std::string_view text, const std::string& where) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, begun = false;
  for (const char c : text) {
    if (c == '"') {
      quoted = !quoted;
      begun = true;
    } else if (!quoted && (c == ' ' || c == '\t' || c == '\n')) {
      if (begun) words.push_back(std::move(word));
      word.clear();
      begun = false;
    } else {
      word += c;
      begun = true;
    }
  }
  if (quoted) refuse(where, "a quote does not end");
  if (begun) words.push_back(std::move(word));
  return words;
}

/// The job of a model and options as words; its model is yet to be loaded.
Job job_of(std::span<const GivenOption> words, const std::string& where) {
  Job job;
  std::vector<GivenOption> given;
  for (const GivenOption& word : words) {
    const auto found = std::find_if(kJobKeys.begin(), kJobKeys.end(),
                                    [&](const JobKey& key) { return key.key == word.name; });
    if (found == kJobKeys.end())
      given.push_back(word);
    else
      found->set(job, where, word.name, word.text);
  }
  try {
    job.request = make_request(given);
  } catch (const OptionError& error) {
    throw OptionError(where + ": " + error.what());
  } catch (const Error& error) {
    throw Error(error.kind(), where + ": " + error.what());
  }
  return job;
}

}  // namespace

std::optional<std::string> word_of_value(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (value.is_number()) return value.dump();
  return std::nullopt;
}

std::string option_text(const JsonObject& file, const std::string& key) {
  const std::optional<std::string> text = word_of_value(file.json()[key]);
  if (!text) file.fail(key, "expected a text, a number or true");
  return *text;
}

ModelRef JobReader::model_of(const std::string& name) {
  const auto found = models_.find(name);
  return found != models_.end() ? found->second
                                : models_.emplace(name, load_model_ref(name)).first->second;
}

void JobReader::add_text(std::string_view text) {
  const std::string where = fmt::format("job '{}'", shown_name(text));
  if (text.starts_with('{')) {
    const Json object = parse_json(text, where);
    return add_object(JsonObject(object, where), where);
  }
  const std::vector<std::string> words = words_of(text, where);
  if (words.empty() || words.front().find('=') != std::string::npos)
    refuse(where, "expected a model first, as in 'resnet-50 mode=training batch=64'");
  Json object = {{"model", words.front()}};
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos || equals == 0)
      refuse(where, fmt::format("expected option=value, found '{}'", shown_name(words[i])));
    const std::string key = words[i].substr(0, equals);
    if (object.contains(key)) refuse(where, fmt::format("{} is given twice", shown_name(key)));
    object[key] = words[i].substr(equals + 1);
  }
  add_object(JsonObject(object, where), where);
}

void JobReader::add_object(const JsonObject& object, const std::string& where) {
  AskedJob asked{.where = where};
  std::vector<GivenOption> words;
  std::string model;
  for (const auto& item : object.json().items()) {
    const std::string key = key_of(item.key());
    if (std::find(further_.begin(), further_.end(), key) != further_.end())
      asked.further.emplace(key, item.value());
    else if (key == "model" && item.value().is_object())
      asked.job.model = model_from_text(item.value().dump(), where);
    else if (key == "model")
      model = option_text(object, item.key());
    else if (key == "gpu" || key == "cluster")
      object.fail(item.key(), "is of the question, not of a job: leave it out");
    else
      words.push_back({key, option_text(object, item.key())});
  }
  if (model.empty() && !asked.job.model.content)
    refuse(where, "states no model: expected \"model\"");
  const ModelRef content = asked.job.model;
  asked.job = job_of(words, where);
  try {
    asked.job.model = model.empty() ? content : model_of(model);
  } catch (const Error& error) {
    throw Error(error.kind(), where + ": " + error.what());
  }
  jobs_.push_back(std::move(asked));
}

void JobReader::add_file(const std::string& path) {
  const bool is_content = path.starts_with('{');
  const std::string where = is_content ? "the jobs" : printable(path);
  const Json json = parse_json(is_content ? path : read_file(path), where);
  const JsonObject file(json, where);
  file.reject_unknown({"jobs"});
  const auto jobs = json.find("jobs");
  if (jobs == json.end() || !jobs->is_array())
    refuse(where, "expected {\"jobs\": [{\"model\": \"resnet-50\", \"batch\": 64}, ...]}");
  for (size_t i = 0; i < jobs->size(); ++i) {
    const std::string here = fmt::format("{}: jobs[{}]", where, i);
    if ((*jobs)[i].is_string())
      add_text((*jobs)[i].get<std::string>());
    else
      add_object(JsonObject((*jobs)[i], here), here);
  }
}

std::vector<AskedJob> JobReader::take() {
  std::set<std::string> names;
  for (const AskedJob& asked : jobs_) {
    if (!asked.job.name.empty() && !names.insert(asked.job.name).second)
      refuse(asked.where, fmt::format("another job is called '{}' too: give each a name of its own",
                                      asked.job.name));
  }
  std::map<std::string, int> repeats;
  for (AskedJob& asked : jobs_) {
    if (!asked.job.name.empty()) continue;
    const std::string& model = asked.job.model.name();
    do {
      const int count = ++repeats[model];
      asked.job.name = count == 1 ? model : fmt::format("{} #{}", model, count);
    } while (!names.insert(asked.job.name).second);
  }
  return std::move(jobs_);
}

}  // namespace tilecast
