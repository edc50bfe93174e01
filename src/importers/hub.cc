#include "importers/hub.h"

#include <algorithm>
#include <cstdlib>

#include "base/ascii.h"
#include "base/file.h"
#include "base/text.h"

namespace tilecast {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "models--", kDivider = "--";

/// "" if it is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path home_file(const fs::path& relative) { return fs::path(variable("HOME")) / relative; }

bool is_part(std::string_view part) {
  return !part.empty() && part.front() != '.' && std::all_of(part.begin(), part.end(), [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
  });
}

/// "models--meta-llama--Llama-3.1-8B"; without an owner "models--gpt2".
std::optional<HubName> name_of_folder(const std::string& folder) {
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  const std::string rest = folder.substr(kPrefix.size());
  const size_t divider = rest.find(kDivider);
  if (divider == std::string::npos) return HubName{.owner = "", .name = rest};
  return HubName{.owner = rest.substr(0, divider), .name = rest.substr(divider + kDivider.size())};
}

/// The revision that `refs/main` names, else the one that was changed last.
fs::path snapshot_of(const fs::path& model) {
  std::error_code code;
  const fs::path ref = model / "refs" / "main";
  if (fs::is_regular_file(ref, code)) {
    constexpr uint64_t kLongestRevision = 256;
    const fs::path named =
        model / "snapshots" / std::string(trim(read_file(ref, kLongestRevision)));
    if (fs::exists(named / "config.json", code)) return named;
  }
  fs::path last;
  fs::file_time_type time;
  for (const auto& entry : fs::directory_iterator(model / "snapshots", code)) {
    if (!fs::exists(entry.path() / "config.json", code)) continue;
    const fs::file_time_type own = fs::last_write_time(entry.path(), code);
    if (!last.empty() && own <= time) continue;
    last = entry.path();
    time = own;
  }
  return last;
}

}  // namespace

std::optional<HubName> find_hub_name(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  HubName name{.owner = text.substr(0, slash), .name = text.substr(slash + 1)};
  if (!is_part(name.owner) || !is_part(name.name)) return std::nullopt;
  return name;
}

fs::path hub_cache() {
  if (const std::string cache = variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = variable("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  const std::string caches = variable("XDG_CACHE_HOME");
  return (caches.empty() ? home_file(".cache") : fs::path(caches)) / "huggingface" / "hub";
}

std::vector<CachedModel> cached_models() {
  std::vector<CachedModel> models;
  if (!is_folder(hub_cache())) return models;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(hub_cache(), code)) {
    std::optional<HubName> name = name_of_folder(entry.path().filename().string());
    if (!name) continue;
    if (fs::path folder = snapshot_of(entry.path()); !folder.empty())
      models.push_back({*std::move(name), std::move(folder)});
  }
  std::sort(models.begin(), models.end(),
            [](const CachedModel& a, const CachedModel& b) { return a.folder < b.folder; });
  return models;
}

std::optional<CachedModel> find_cached_model(const HubName& name) {
  std::vector<CachedModel> others;
  for (CachedModel& model : cached_models()) {
    if (lower_case(model.name.name) != lower_case(name.name)) continue;
    if (lower_case(model.name.owner) == lower_case(name.owner)) return std::move(model);
    others.push_back(std::move(model));
  }
  if (others.size() != 1) return std::nullopt;
  return std::move(others.front());
}

}  // namespace tilecast
