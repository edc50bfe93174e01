#pragma once

// Fields that configs of several families have, beside JsonObject's.

#include <string>
#include <vector>

#include "base/json.h"

namespace tilecast {

/// Whole numbers in [minimum, maximum]. Throws Error{kInput} that names the field and the element
/// if the field is missing or is no list of such numbers.
std::vector<int64_t> integers(const JsonObject& config, const std::string& key, int64_t minimum,
                              int64_t maximum);

/// As `integers`; throws Error{kInput} unless there are `count`, the length of the field `other`.
std::vector<int64_t> integers_like(const JsonObject& config, const std::string& key,
                                   const std::string& other, size_t count, int64_t maximum);

/// A number above 0 and at most 1000, for scaling factors of layers; `fallback` if it is missing.
double factor(const JsonObject& config, const std::string& key, double fallback);

/// The first entry of `architectures`; `fallback` if there is none.
std::string class_name(const JsonObject& config, const std::string& fallback);

/// Number of classes of a classifier: `num_labels`, else the size of `id2label`, else 2, as in
/// transformers' PretrainedConfig.
int64_t label_count(const JsonObject& config);

/// A square image: `image_size`, a number or a list of two equal ones. Throws Error{kUnsupported}
/// for other images.
int64_t image_side(const JsonObject& config);
/// As above, `fallback` if the field is missing.
int64_t image_side_or(const JsonObject& config, int64_t fallback);

}  // namespace tilecast
