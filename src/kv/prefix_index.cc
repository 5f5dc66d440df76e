#include "kv/prefix_index.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "kv/block_pool.h"

namespace dunlin {
namespace {

// Multiply and fold, a word at a time; only spreads keys over buckets, never decides equality.
std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  const auto product = static_cast<unsigned __int128>(hash ^ word) * 0x9E3779B97F4A7C15u;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace

PrefixIndex::PrefixIndex(int num_groups, int num_blocks, int max_nodes)
    : num_groups_(static_cast<std::size_t>(num_groups)),
      max_nodes_(max_nodes),
      owners_(idx(num_blocks)),
      buckets_(std::bit_ceil(idx(max_nodes) + 1), kNoNode) {
  // The room is taken here, its pages only as nodes arise: a large cache may never be filled.
  nodes_.reserve(idx(max_nodes) + 1);
  blocks_.reserve((idx(max_nodes) + 1) * num_groups_);
  nodes_[idx(take_node())].num_pins = 1;
}

PrefixNode PrefixIndex::take_node() {
  if (unused_ != kNoNode) return std::exchange(unused_, nodes_[idx(unused_)].next);
  if (nodes_.size() > idx(max_nodes_)) return kNoNode;
  nodes_.emplace_back();
  blocks_.resize(blocks_.size() + num_groups_, kNoBlock);
  return static_cast<PrefixNode>(nodes_.size() - 1);
}

std::int32_t PrefixIndex::bucket_of(PrefixNode parent, const TokenId* tokens) const {
  std::uint64_t hash = mix(0x243F6A8885A308D3u, static_cast<std::uint32_t>(parent));
  for (int i = 0; i < kBlockSize; i += 2) {
    const std::uint64_t low = static_cast<std::uint32_t>(tokens[i]);
    const std::uint64_t high = static_cast<std::uint32_t>(tokens[i + 1]);
    hash = mix(hash, high << 32 | low) + 0x13198A2E03707344u;
  }
  return static_cast<std::int32_t>(hash & (buckets_.size() - 1));
}

PrefixNode PrefixIndex::find_in(std::int32_t bucket, PrefixNode parent,
                                const TokenId* tokens) const {
  for (PrefixNode n = buckets_[idx(bucket)]; n != kNoNode; n = nodes_[idx(n)].next) {
    const Node& node = nodes_[idx(n)];
    if (node.parent == parent && std::equal(tokens, tokens + kBlockSize, node.tokens)) return n;
  }
  return kNoNode;
}

PrefixNode PrefixIndex::find_child(PrefixNode parent, const TokenId* tokens) const {
  return find_in(bucket_of(parent, tokens), parent, tokens);
}

PrefixNode PrefixIndex::find_or_add_child(PrefixNode parent, const TokenId* tokens) {
  const std::int32_t bucket = bucket_of(parent, tokens);
  const PrefixNode found = find_in(bucket, parent, tokens);
  if (found != kNoNode) return found;
  const PrefixNode added = take_node();
  if (added == kNoNode) return kNoNode;
  Node& node = nodes_[idx(added)];
  node.parent = parent;
  node.bucket = bucket;
  node.next = buckets_[idx(bucket)];
  std::copy(tokens, tokens + kBlockSize, node.tokens);
  buckets_[idx(bucket)] = added;
  ++nodes_[idx(parent)].num_children;
  ++num_nodes_;
  return added;
}

void PrefixIndex::set_block(PrefixNode node, int group_idx, std::int32_t block) {
  std::int32_t& entry = blocks_[idx(node) * num_groups_ + idx(group_idx)];
  DUNLIN_CHECK(entry == kNoBlock, "the node has a block of this group already");
  DUNLIN_CHECK(owner(block).node == kNoNode, "the block stands for another prefix already");
  entry = block;
  owners_[idx(block)] = {node, group_idx};
  ++nodes_[idx(node)].num_blocks;
}

void PrefixIndex::remove_block(std::int32_t block) {
  const Owner gone = owner(block);
  DUNLIN_CHECK(gone.node != kNoNode, "no node names this block");
  owners_[idx(block)] = {};
  blocks_[idx(gone.node) * num_groups_ + idx(gone.group_idx)] = kNoBlock;
  --nodes_[idx(gone.node)].num_blocks;
  remove_unused(gone.node);
}

void PrefixIndex::unpin(PrefixNode node) {
  DUNLIN_CHECK(nodes_[idx(node)].num_pins > 0, "the node isn't pinned");
  --nodes_[idx(node)].num_pins;
  remove_unused(node);
}

void PrefixIndex::remove_unused(PrefixNode node) {
  while (node != root()) {
    Node& gone = nodes_[idx(node)];
    if (gone.num_blocks > 0 || gone.num_children > 0 || gone.num_pins > 0) return;
    PrefixNode* link = &buckets_[idx(gone.bucket)];
    while (*link != node) link = &nodes_[idx(*link)].next;
    *link = gone.next;
    const PrefixNode above = gone.parent;
    gone.parent = kNoNode;
    gone.bucket = -1;
    gone.next = unused_;
    unused_ = node;
    --num_nodes_;
    --nodes_[idx(above)].num_children;
    node = above;
  }
}

void PrefixIndex::check_integrity() const {
  int used = 0;
  std::vector<std::int32_t> children(nodes_.size(), 0);
  for (std::size_t n = 1; n < nodes_.size(); ++n) {
    const Node& node = nodes_[n];
    if (node.bucket < 0) continue;
    ++used;
    ++children[idx(node.parent)];
    const auto id = static_cast<PrefixNode>(n);
    DUNLIN_CHECK(find_child(node.parent, node.tokens) == id, "a node can't be found");
    int held = 0;
    for (int g = 0; g < static_cast<int>(num_groups_); ++g) {
      if (block(id, g) == kNoBlock) continue;
      ++held;
      DUNLIN_CHECK(owner(block(id, g)).node == id && owner(block(id, g)).group_idx == g,
                   "a block doesn't know its node");
    }
    DUNLIN_CHECK(held == node.num_blocks, "num_blocks is wrong");
    DUNLIN_CHECK(held > 0 || node.num_children > 0 || node.num_pins > 0, "a node is of no use");
  }
  DUNLIN_CHECK(used == num_nodes_, "num_nodes is wrong");
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    DUNLIN_CHECK(children[n] == nodes_[n].num_children, "num_children is wrong");
  }
}

}  // namespace dunlin
