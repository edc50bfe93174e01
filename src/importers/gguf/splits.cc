#include "importers/gguf/splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// More than any published model: 405 G parameters in 16 bits are 17 parts of 48 GB.
constexpr int64_t kMostParts = 10'000;

int64_t whole(const GgufHeader& header, std::string_view key, int64_t otherwise) {
  const auto found = header.values.find(key);
  if (found == header.values.end()) return otherwise;
  const int64_t* const value = std::get_if<int64_t>(&found->second);
  return value == nullptr ? otherwise : *value;
}

int64_t part_count(const GgufHeader& header, const std::string& where) {
  const int64_t count = whole(header, "split.count", 1);
  if (count > kMostParts)
    throw Error(ErrorKind::kInput, fmt::format("{}: 'split.count' is {}; expected {} at most",
                                               where, count, kMostParts));
  return std::max<int64_t>(1, count);
}

/// From 0.
int64_t part_number(const GgufHeader& header, int64_t count, const std::string& where) {
  const int64_t number = whole(header, "split.no", 0);
  if (number < 0 || number >= count)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: 'split.no' is {}; expected 0 to {}, since 'split.count' is {}",
                            where, number, count - 1, count));
  return number;
}

GgufHeader read_whole_header(std::string_view content, const std::string& where) {
  std::optional<GgufHeader> header = read_gguf_header(content, where);
  if (!header)
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: the file ends within its header, after {} bytes; expected the whole list "
                    "of tensors; is the download complete?",
                    where, content.size()));
  return *std::move(header);
}

std::string ending(int64_t number, int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

}  // namespace

std::vector<std::string> other_gguf_splits(const ModelText& text) {
  const GgufHeader header = read_whole_header(text.content, text.where);
  const int64_t count = part_count(header, text.where);
  if (count == 1) return {};
  const int64_t own = part_number(header, count, text.where);
  const std::string name = std::filesystem::path(text.where).filename().string();
  const std::string end = ending(own, count);
  if (!name.ends_with(end))
    throw Error(ErrorKind::kInput,
                fmt::format("{}: is part {} of {}; expected a name that ends in {}, so that the "
                            "other parts can be found beside it: rename it, or join the parts with "
                            "`llama-gguf-split --merge`",
                            text.where, own + 1, count, end));
  std::vector<std::string> others;
  for (int64_t i = 0; i < count; ++i) {
    if (i != own) others.push_back(name.substr(0, name.size() - end.size()) + ending(i, count));
  }
  return others;
}

std::string gguf_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).stem().string();
  const size_t length = std::string("-00002-of-00005").size();
  return name.size() > length ? name.substr(0, name.size() - length) : name;
}

GgufHeader read_gguf_splits(const ModelText& text, const std::vector<GgufSplit>& parts) {
  GgufHeader first = read_whole_header(text.content, text.where);
  const int64_t count = part_count(first, text.where);
  if (count == 1) return first;
  const auto found = static_cast<int64_t>(parts.size()) + 1;
  if (found != count)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: is one of {} parts; {} {} given; expected all of them in "
                            "one folder, or one file (`llama-gguf-split --merge`)",
                            text.where, count, found, found == 1 ? "is" : "are"));
  std::vector<std::pair<GgufHeader, std::string>> headers(static_cast<size_t>(count));
  const auto place = [&](GgufHeader header, const std::string& where) {
    if (part_count(header, where) != count)
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}: is one of {} parts, but {} one of {}; expected parts of one model",
                      where, part_count(header, where), text.where, count));
    auto& [own, name] = headers[static_cast<size_t>(part_number(header, count, where))];
    if (!name.empty())
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}: has the same 'split.no' as {}; expected one of each", where, name));
    own = std::move(header);
    name = where;
  };
  place(std::move(first), text.where);
  for (const GgufSplit& part : parts)
    place(read_whole_header(part.content, part.where), part.where);
  GgufHeader all = std::move(headers.front().first);
  for (size_t i = 1; i < headers.size(); ++i) {
    for (GgufTensor& tensor : headers[i].first.tensors) all.tensors.push_back(std::move(tensor));
  }
  const auto tensors = static_cast<int64_t>(all.tensors.size());
  const int64_t expected = whole(all, "split.tensors.count", tensors);
  if (expected != tensors)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the parts have {} tensors; expected {} ('split.tensors.count')",
                            text.where, tensors, expected));
  return all;
}

}  // namespace tilecast
