#include "sim/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tilecast {

size_t PrefixCache::EdgeHash::operator()(const Edge& e) const {
  return static_cast<size_t>(
      mix_keys(e.key, (uint64_t{e.parent} << 32) ^ static_cast<uint64_t>(e.offset)));
}

PrefixCache::PrefixCache(int64_t blocks, const PrefixRule& rule, HostCache* host)
    : rule_(rule), host_(host), nodes_(1) {
  if (blocks > 0) give(blocks);
}

uint32_t PrefixCache::child(uint32_t parent, uint64_t key, int64_t offset) const {
  const auto found = edges_.find({key, offset, parent});
  return found == edges_.end() ? kNone : found->second;
}

uint32_t PrefixCache::new_node() {
  if (unused_.empty()) {
    nodes_.emplace_back();
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  const uint32_t node = unused_.back();
  unused_.pop_back();
  nodes_[node] = {};
  return node;
}

void PrefixCache::append(uint32_t node) { insert_after(node, last_); }

/// `before` kNone: at the front.
void PrefixCache::insert_after(uint32_t node, uint32_t before) {
  const uint32_t after = before == kNone ? first_ : nodes_[before].after;
  nodes_[node].before = before;
  nodes_[node].after = after;
  (before == kNone ? first_ : nodes_[before].after) = node;
  (after == kNone ? last_ : nodes_[after].before) = node;
}

void PrefixCache::unlink(uint32_t node) {
  const auto [before, after] = std::pair(nodes_[node].before, nodes_[node].after);
  (before == kNone ? first_ : nodes_[before].after) = after;
  (after == kNone ? last_ : nodes_[after].before) = before;
}

/// Removes a free node from list and tree.
void PrefixCache::drop(uint32_t node) {
  unlink(node);
  const Node& n = nodes_[node];
  if (!n.empty) {
    edges_.erase({n.key, n.offset, n.parent});
    Node& parent = nodes_[n.parent];
    if (parent.joined_child == node) parent.joined_child = kNone;
  }
  unused_.push_back(node);
}

/// Divides a node after so many blocks. Returns the new upper part; the lower one keeps its number,
/// since a holder is known by its last node.
uint32_t PrefixCache::split(uint32_t node, int64_t blocks) {
  const uint32_t upper = new_node();
  Node &u = nodes_[upper], &lower = nodes_[node];
  u.key = lower.key;
  u.chain = lower.chain;
  u.offset = lower.offset;
  u.blocks = blocks;
  u.parent = lower.parent;
  u.holders = lower.holders;
  if (nodes_[u.parent].joined_child == node) nodes_[u.parent].joined_child = upper;
  edges_[{u.key, u.offset, u.parent}] = upper;
  lower.parent = upper;
  lower.offset += blocks;
  lower.blocks -= blocks;
  edges_[{lower.key, lower.offset, upper}] = node;
  if (lower.holders == 0) insert_after(upper, node);
  return upper;
}

PrefixCache::Match PrefixCache::find(std::span<const PrefixPiece> pieces,
                                     int64_t most_blocks) const {
  Match match;
  Place& at = match.place;
  while (at.blocks < most_blocks && at.piece < pieces.size()) {
    const PrefixPiece& piece = pieces[at.piece];
    if (at.in_piece == piece.blocks) {
      at.piece += 1;
      at.in_piece = 0;
      continue;
    }
    const uint32_t next = child(at.node, piece.key, at.in_piece);
    if (next == kNone) break;
    const Node& node = nodes_[next];
    const int64_t blocks = std::min(node.blocks, most_blocks - at.blocks);
    if (blocks < node.blocks) match.part_of_node = blocks;
    if (node.holders == 0) match.free_blocks += blocks;
    at.node = next;
    at.in_piece += blocks;
    at.blocks += blocks;
  }
  return match;
}

PrefixCache::Place PrefixCache::hold(const Match& match) {
  Place place = match.place;
  if (match.part_of_node > 0) place.node = split(place.node, match.part_of_node);
  for (uint32_t node = place.node; node != kRoot; node = nodes_[node].parent) {
    if (nodes_[node].holders == 0) unlink(node);
    nodes_[node].holders += 1;
  }
  nodes_[place.node].joined_child = kNone;  // somebody ends here
  return place;
}

PrefixCache::Published PrefixCache::publish(std::span<const PrefixPiece> pieces, Place place,
                                            int64_t blocks) {
  Published result{place};
  Place& at = result.place;
  uint32_t created = kNone;
  while (at.blocks < blocks && at.piece < pieces.size()) {
    const PrefixPiece& piece = pieces[at.piece];
    if (at.in_piece == piece.blocks) {
      at.piece += 1;
      at.in_piece = 0;
      continue;
    }
    const int64_t most = std::min(piece.blocks - at.in_piece, blocks - at.blocks);
    uint32_t next = child(at.node, piece.key, at.in_piece);
    if (next == kNone) {
      next = new_node();
      nodes_[next].key = piece.key;
      nodes_[next].chain = piece.chain;
      nodes_[next].offset = at.in_piece;
      nodes_[next].blocks = most;
      nodes_[next].parent = at.node;
      edges_[{piece.key, at.in_piece, at.node}] = next;
      nodes_[at.node].joined_child = created == at.node ? next : kNone;
      created = next;
      cached_blocks_ += most;
      if (host_ != nullptr && rule_.host_copies_when_computed)
        host_->store(piece.chain, at.in_piece, at.in_piece + most);
    } else {
      // Somebody else has computed the same: its blocks count, and the copies are free.
      if (nodes_[next].blocks > most) next = split(next, most);
      const int64_t copies = nodes_[next].blocks;
      if (nodes_[next].holders == 0)
        unlink(next);
      else
        result.freed += copies;
      give(copies);
    }
    nodes_[next].holders += 1;
    at.node = next;
    at.in_piece += nodes_[next].blocks;
    at.blocks += nodes_[next].blocks;
  }
  nodes_[at.node].joined_child = kNone;  // somebody ends here
  if (host_ != nullptr && created != kNone && rule_.host_copies_when_computed)
    host_->touch(pieces.first(std::min(pieces.size(), size_t{at.piece} + 1)));
  return result;
}

int64_t PrefixCache::release(Place place) {
  int64_t freed = 0;
  for (uint32_t node = place.node; node != kRoot; node = nodes_[node].parent) {
    nodes_[node].holders -= 1;
    if (nodes_[node].holders > 0) continue;
    append(node);
    freed += nodes_[node].blocks;
  }
  return freed;
}

/// The blocks of a leaf, and of the parents that go with it, lose their content; they are first in
/// the list then.
void PrefixCache::evict_leaf(uint32_t leaf) {
  int64_t blocks = 0;
  for (uint32_t node = leaf; node != kNone;) {
    const uint32_t parent = nodes_[node].parent;
    const bool joined = parent != kRoot && nodes_[parent].joined_child == node;
    blocks += nodes_[node].blocks;
    drop(node);
    node = joined ? parent : kNone;
  }
  cached_blocks_ -= blocks;
  evicted_blocks_ += blocks;
  const uint32_t empty = new_node();
  nodes_[empty].blocks = blocks;
  nodes_[empty].empty = true;
  insert_after(empty, kNone);
}

void PrefixCache::take(int64_t blocks) {
  while (blocks > 0) {
    TILECAST_CHECK(first_ != kNone) << "more blocks are taken than are free";
    if (rule_.evicts_whole_leaves && !nodes_[first_].empty) evict_leaf(first_);
    Node& node = nodes_[first_];
    const int64_t taken = std::min(blocks, node.blocks);
    node.blocks -= taken;
    blocks -= taken;
    if (!node.empty) {
      const int64_t end = node.offset + node.blocks + taken;
      if (host_ != nullptr && !rule_.host_copies_when_computed)
        host_->store(node.chain, end - taken, end);
      cached_blocks_ -= taken;
      evicted_blocks_ += taken;
    }
    if (node.blocks == 0) drop(first_);
  }
}

void PrefixCache::give(int64_t blocks) {
  if (blocks == 0) return;
  const uint32_t end = rule_.takes_empty_first ? first_ : last_;
  if (end != kNone && nodes_[end].empty) {
    nodes_[end].blocks += blocks;
    return;
  }
  const uint32_t node = new_node();
  nodes_[node].blocks = blocks;
  nodes_[node].empty = true;
  insert_after(node, rule_.takes_empty_first ? kNone : last_);
}

int64_t PrefixCache::count_free() const {
  int64_t blocks = 0;
  for (uint32_t node = first_; node != kNone; node = nodes_[node].after)
    blocks += nodes_[node].blocks;
  return blocks;
}

}  // namespace tilecast
