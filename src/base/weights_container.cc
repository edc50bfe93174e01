#include "base/weights_container.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr std::string_view kMagic = "tilecast-weights 7\n";
constexpr int kSchemaVersion = 7;
constexpr size_t kAlignment = 16;  // as cmake/embed.cmake aligns files

/// FNV-1a over words of 8 bytes, which is enough to notice damage.
uint64_t checksum_of(std::string_view bytes) {
  uint64_t hash = 14695981039346656037ull;
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    hash = (hash ^ word) * 1099511628211ull;
    hash ^= hash >> 32;
  }
  return hash;
}

/// The length of the header, which stands before a newline; takes both off.
size_t take_length(std::string_view& rest, const std::string& where) {
  constexpr size_t kLongest = 20;  // digits and the newline
  const size_t newline = rest.substr(0, kLongest).find('\n');
  if (newline == std::string_view::npos) unusable_weights(where, "it is truncated");
  size_t length = 0;
  for (char c : rest.substr(0, newline)) {
    if (c < '0' || c > '9') unusable_weights(where, "the header's length is no number");
    length = length * 10 + static_cast<size_t>(c - '0');
  }
  rest.remove_prefix(newline + 1);
  return length;
}

}  // namespace

void unusable_weights(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: not a usable weights file: {}; make one with 'tilecast train'",
                          where, what));
}

WeightsContainer read_container(std::string_view content, const std::string& where,
                                Checksum checksum) {
  std::string_view rest = content;
  if (!rest.starts_with(kMagic))
    unusable_weights(
        where, fmt::format("it does not start with '{}'", kMagic.substr(0, kMagic.size() - 1)));
  rest.remove_prefix(kMagic.size());
  const size_t length = take_length(rest, where);
  if (rest.size() < length) unusable_weights(where, "it is truncated");
  const std::string_view text = rest.substr(0, length);
  // What a build has embedded has no key twice and needs no place of an error: half the time.
  WeightsContainer container{
      checksum == Checksum::kTrust ? Json::parse(text) : parse_json(text, where),
      rest.substr(length)};
  const Json& header = container.header;
  if (!whole_number(header.at("schema_version"), kSchemaVersion, kSchemaVersion))
    unusable_weights(where, "unknown schema_version");
  const auto bytes = static_cast<int64_t>(container.payload.size());
  const std::optional<int64_t> count =
      whole_number(header.at("float_count"), 0, bytes / static_cast<int64_t>(sizeof(float)));
  if (!count || bytes != *count * static_cast<int64_t>(sizeof(float)))
    unusable_weights(where, fmt::format("expected {} parameters, found {} bytes",
                                        header.at("float_count").dump(), bytes));
  if (checksum == Checksum::kVerify && header.at("checksum") != checksum_of(container.payload))
    unusable_weights(where, "the checksum of the parameters differs");
  return container;
}

std::string write_container(Json header, std::string_view payload) {
  header["schema_version"] = kSchemaVersion;
  header["float_count"] = payload.size() / sizeof(float);
  header["checksum"] = checksum_of(payload);
  std::string text = header.dump();
  const auto size = [&] {
    return kMagic.size() + std::to_string(text.size()).size() + 1 + text.size();
  };
  while (size() % kAlignment != 0) text += ' ';
  return fmt::format("{}{}\n{}{}", kMagic, text.size(), text, payload);
}

}  // namespace tilecast
