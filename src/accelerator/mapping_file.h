#pragma once

// A file with a mapping for each layer:
//
// {"schema_version": 1, "layers": [
//   {"kind": "product", "sizes": "k 64, c 3, p 112, q 112, r 7, s 7, stride 2",
//    "mapping": "order=kp tile=k32,c3,p28,q112,r7,s7"}]}
//
// An entry is for the layers that have its `layer` (the name), its `kind` and its `sizes`, as far
// as it states them. One that states the name comes before others, which may then have no layer
// left.

#include <string>
#include <string_view>
#include <vector>

#include "accelerator/layer.h"

namespace tilecast::accelerator {

struct MappingEntry {
  std::string where;               ///< for messages
  std::string layer, kind, sizes;  ///< "": not stated
  std::string mapping;

  bool is_for(const std::string& name, const Layer& given) const;
};

/// Throws Error{kInput}, with `where` for the file.
std::vector<MappingEntry> parse_mapping_file(std::string_view text, const std::string& where);

/// The entry of a layer, or nullptr. Throws Error{kInput} if two are for it, and both or neither
/// state its name.
const MappingEntry* entry_of(const std::vector<MappingEntry>& entries, const std::string& name,
                             const Layer& layer);

}  // namespace tilecast::accelerator
