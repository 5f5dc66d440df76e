// WaitingQueue: the sequences that wait for a slot, and which of them comes next.
//
// First by tenant: the one that was served least (fair_share.h). Among the sequences of a tenant
// by policy. A sequence is overtaken when a later one of the same tenant is admitted before it;
// after max_overtakes times it is due, and due ones go first, in the order of arrival. So nobody is
// overtaken more often than that. (Between tenants no such number holds or is needed: a tenant's
// turn comes by what the others were served.)
//
// Owned by the engine thread. Next to come means that the others wait for it, also where it can't
// be admitted yet.
#pragma once

#include <memory>
#include <vector>

#include "base/function_ref.h"
#include "engine/fair_share.h"
#include "engine/schedule_policy.h"
#include "engine/sequence.h"

namespace dunlin {

class WaitingQueue {
 public:
  // Under kPrefix so many sequences, the first of the tenant by arrival, are looked at.
  static constexpr int kMaxPrefixCandidates = 32;

  // `shares` outlives the queue.
  WaitingQueue(SchedulePolicy policy, int max_overtakes, const FairShare& shares)
      : policy_(policy), max_overtakes_(max_overtakes), shares_(shares) {}

  void insert(std::unique_ptr<Sequence> seq);
  // Takes a sequence out; null for an unknown id.
  std::unique_ptr<Sequence> remove(RequestId id);

  // Whose turn it is. Not for an empty queue.
  int next_tenant() const;
  // The sequence that comes next; null where none waits. `num_cached` says how many tokens of one
  // the prefix cache has; asked under kPrefix only.
  Sequence* next(FunctionRef<int(Sequence&)> num_cached) const;
  // Takes `seq` out to run, and counts whom it overtakes.
  std::unique_ptr<Sequence> admit(const Sequence& seq);

  // The choices that wait over one prompt and never ran: how many, and the first; null for none.
  int num_in_group(RequestId group) const;
  Sequence* next_in_group(RequestId group) const;
  // Whether those that came before `seq` may be overtaken once more.
  bool may_overtake(const Sequence& seq) const;

  bool empty() const { return seqs_.empty(); }
  int size() const { return static_cast<int>(seqs_.size()); }
  const std::vector<std::unique_ptr<Sequence>>& seqs() const { return seqs_; }  // by arrival

  // Aborts where the order or a count is wrong.
  void check_integrity() const;

 private:
  Sequence* longest_prefix(int tenant, FunctionRef<int(Sequence&)> num_cached) const;

  const SchedulePolicy policy_;
  const int max_overtakes_;
  const FairShare& shares_;
  std::vector<std::unique_ptr<Sequence>> seqs_;  // by arrival
};

}  // namespace dunlin
