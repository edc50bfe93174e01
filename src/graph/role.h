#pragma once

// The role of a node, a tensor or a segment in its model, where its operator and sizes do not say
// so. Whoever builds a graph sets roles; passes that copy or fuse nodes carry them; memory and
// times read them. Names are labels for people: renaming everything changes no number.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tilecast {

enum class Role : uint8_t {
  kNone,
  // Roles of nodes.
  kResidual,
  kSoftmax,
  kSharedExpert,
  kOutput,
  kGroup,
  kBottomMlp,
  // Roles of tensors.
  kExperts,
  kQkv,
  kGateUp,
  kLatents,
  kRouter,
  kGate,
  // Roles of tensors and segments.
  kReceived,
  // Roles of segments.
  kVision,
  kSixteenBits,
};

/// Things that can have a role.
enum class Bearer : uint8_t { kNode, kInput, kWeight, kSegment };

struct RoleInfo {
  Role role = Role::kNone;
  std::string_view word;  ///< in graph notation
  std::span<const Bearer> bearers;
  /// The operators of the nodes; empty: any.
  std::span<const std::string_view> ops;
  std::string_view doc;
};

/// The table of roles, without kNone.
std::span<const RoleInfo> roles();

/// "residual"; "" for kNone.
std::string_view role_word(Role role);

/// nullopt: no role has this word.
std::optional<Role> find_role(std::string_view word);

/// Whether something of this kind can have the role; kNone always fits. Without regard to
/// operators.
bool role_fits(Role role, Bearer bearer);

/// Whether a node of this operator can have the role.
bool role_fits_op(Role role, std::string_view op);

}  // namespace tilecast
