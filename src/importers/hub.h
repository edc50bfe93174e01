#pragma once

// Models by their names on Hugging Face ("meta-llama/Llama-3.1-8B"), in the local cache of the hub.
// Nothing is downloaded. Source: huggingface_hub 0.36, constants.py and "Understand caching".

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tilecast {

struct HubName {
  std::string owner, name;
};

/// The parts of "owner/name"; nullopt for another text. Owners and names have letters, digits,
/// '-', '_' and '.'.
std::optional<HubName> find_hub_name(const std::string& text);

/// A model of the cache, with the files of one of its revisions.
struct CachedModel {
  HubName name;
  std::filesystem::path folder;  ///< of a snapshot with a config.json
};

/// The folder of the cache: HF_HUB_CACHE, else `hub` in HF_HOME, else in `huggingface` in
/// XDG_CACHE_HOME, else in ~/.cache/huggingface.
std::filesystem::path hub_cache();

/// Models of the cache that have a config.json, sorted; empty without a cache. Of several revisions
/// that of the branch main counts, else the one that was changed last.
std::vector<CachedModel> cached_models();

/// The model of that name, case ignored: that of the owner, else of the only other owner who has
/// one. nullopt: none, or several owners have one.
std::optional<CachedModel> find_cached_model(const HubName& name);

}  // namespace tilecast
