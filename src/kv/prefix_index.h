// PrefixIndex: which cached blocks hold the KV of which token prefix. A tree of full blocks: a
// node stands for kBlockSize tokens after its parent's, so the path from the root spells the whole
// prefix. A node names one block for each KV group that still has one: full-attention groups need
// all nodes of a prefix, window groups only those of the last W tokens.
//
// Children are found by a hash of (parent, tokens) and verified by comparing both, so two prefixes
// never mix. A node lives while it has a block, a child or a pin. Radix-tree prefix caching: Zheng
// et al., "SGLang" (2024); hashed blocks: vLLM. Owned by the engine thread; allocates only in its
// constructor; holds at most max_nodes nodes and refuses more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dunlin/types.h"
#include "kv/kv_layout.h"

namespace dunlin {

using PrefixNode = std::int32_t;
inline constexpr PrefixNode kNoNode = -1;

class PrefixIndex {
 public:
  PrefixIndex(int num_groups, int num_blocks, int max_nodes);

  static constexpr PrefixNode root() { return 0; }
  // The root, or the node of a salt (kv/cache_salt.h): no blocks stand for it.
  bool is_root(PrefixNode node) const { return node == root() || nodes_[idx(node)].tokens[0] < 0; }

  // `tokens` holds kBlockSize tokens. kNoNode where there is no such child.
  PrefixNode find_child(PrefixNode parent, const TokenId* tokens) const;
  // The child, made if need be; kNoNode where the index is full.
  PrefixNode find_or_add_child(PrefixNode parent, const TokenId* tokens);

  PrefixNode parent(PrefixNode node) const { return nodes_[idx(node)].parent; }
  // kNoBlock where the group's block was never cached or is evicted.
  std::int32_t block(PrefixNode node, int group_idx) const {
    return blocks_[idx(node) * num_groups_ + static_cast<std::size_t>(group_idx)];
  }
  void set_block(PrefixNode node, int group_idx, std::int32_t block);
  // Forgets an evicted block, and every node that this leaves without use.
  void remove_block(std::int32_t block);

  // A pinned node stays, whatever happens to its blocks.
  void pin(PrefixNode node) { ++nodes_[idx(node)].num_pins; }
  void unpin(PrefixNode node);

  // The node and group that name `block`; {kNoNode, 0} where none does.
  struct Owner {
    PrefixNode node = kNoNode;
    std::int32_t group_idx = 0;
  };
  Owner owner(std::int32_t block) const { return owners_[idx(block)]; }

  int num_nodes() const { return num_nodes_; }  // without the root
  void check_integrity() const;

 private:
  struct Node {
    PrefixNode parent = kNoNode;
    PrefixNode next = kNoNode;  // in its bucket, or in the list of unused nodes
    std::int32_t num_children = 0;
    std::int32_t num_blocks = 0;
    std::int32_t num_pins = 0;
    std::int32_t bucket = -1;  // -1: unused
    TokenId tokens[kBlockSize] = {};
  };

  static std::size_t idx(std::int32_t i) { return static_cast<std::size_t>(i); }
  std::int32_t bucket_of(PrefixNode parent, const TokenId* tokens) const;
  PrefixNode find_in(std::int32_t bucket, PrefixNode parent, const TokenId* tokens) const;
  PrefixNode take_node();  // an unused one, or a new one; kNoNode where the index is full
  void remove_unused(PrefixNode node);

  std::size_t num_groups_;
  std::int32_t max_nodes_;
  std::vector<Node> nodes_;           // at most [max_nodes + 1], 0 is the root
  std::vector<std::int32_t> blocks_;  // [nodes_.size(), num_groups]
  std::vector<Owner> owners_;         // [num_blocks]
  std::vector<PrefixNode> buckets_;   // power of two
  PrefixNode unused_ = kNoNode;       // list through Node::next
  int num_nodes_ = 0;
};

}  // namespace dunlin
