#pragma once

// Rules that a description must satisfy beyond the form of its fields.

#include <string>
#include <vector>

#include "accelerator/machine.h"

namespace tilecast::accelerator {

/// The objects of a description and their edges, by index.
struct ObjectGraph {
  std::vector<std::string> names, kinds;
  std::vector<std::vector<int>> forward, contains, reads, writes;
};

/// Throws Error{kInput} for cycles of forward edges, edges between kinds that have none, objects
/// that no instruction can reach, and memories or registers that are written and never read.
void check_objects(const ObjectGraph& graph, const std::string& where);

/// The way from a fetch stage to the unit: the fetch stage, then the stages.
std::vector<int> path_to_unit(const ObjectGraph& graph, int unit);

/// Throws Error{kInput} if the expression uses a name that is neither a parameter nor an attribute
/// of instructions (instruction_attributes()).
void check_names(const Expression& expression, const std::vector<Parameter>& parameters,
                 const std::string& where);

/// The attributes that latencies may use: the sizes of the block that an instruction works on (n,
/// k, c, p, q, r, s), rows, bytes, requests, misses, fresh, pool.
const std::vector<std::string>& instruction_attributes();

}  // namespace tilecast::accelerator
