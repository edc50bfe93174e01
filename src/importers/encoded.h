#pragma once

#include <optional>
#include <string>

#include "importers/model.h"

namespace tilecast {

/// A model file whose bytes stand in JSON, for senders of texts: {"base64": "…", "name": "x.onnx"}.
struct EncodedFile {
  std::string content, name;
};

/// nullopt: `text` is no such object. Throws Error{kInput} where it is one with wrong fields.
std::optional<EncodedFile> decoded_file(const ModelText& text);

}  // namespace tilecast
