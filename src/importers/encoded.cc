#include "importers/encoded.h"

#include "base/base64.h"
#include "base/text.h"

namespace tilecast {
namespace {

constexpr const char *kKey = "base64", *kName = "name";

/// The key comes first, as sorted keys have it. No config begins so.
bool is_encoded(std::string_view text) {
  text = trim(text);
  return text.starts_with('{') && trim(text.substr(1)).starts_with("\"base64\"");
}

}  // namespace

std::optional<EncodedFile> decoded_file(const ModelText& text) {
  if (!is_encoded(text.content)) return std::nullopt;
  const Json json = parse_json(text.content, text.where);
  const JsonObject object(json, text.where);
  object.reject_unknown({kKey, kName});
  std::optional<std::string> bytes = from_base64(object.string(kKey));
  if (!bytes) object.fail(kKey, "is no base64 (RFC 4648: with + and /, padded with =)");
  if (is_encoded(*bytes)) object.fail(kKey, "holds base64 again");
  return EncodedFile{*std::move(bytes),
                     printable(object.optional_string({kName}).value_or(text.where))};
}

}  // namespace tilecast
