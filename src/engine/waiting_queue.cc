#include "engine/waiting_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace dunlin {

void WaitingQueue::insert(std::unique_ptr<Sequence> seq) {
  if (policy_ != SchedulePolicy::kPriority) seq->priority = 0;
  seq->is_due = seq->num_overtaken >= max_overtakes_;
  const auto behind = std::upper_bound(
      seqs_.begin(), seqs_.end(), seq->arrival,
      [](std::uint64_t arrival, const auto& other) { return arrival < other->arrival; });
  seqs_.insert(behind, std::move(seq));
}

std::unique_ptr<Sequence> WaitingQueue::remove(RequestId id) {
  const auto it =
      std::find_if(seqs_.begin(), seqs_.end(), [id](const auto& seq) { return seq->id == id; });
  if (it == seqs_.end()) return nullptr;
  std::unique_ptr<Sequence> seq = std::move(*it);
  seqs_.erase(it);
  return seq;
}

int WaitingQueue::next_tenant() const {
  int tenant = seqs_.front()->tenant;
  if (shares_.num_tenants() == 1) return tenant;
  for (const auto& seq : seqs_) {
    if (shares_.served(seq->tenant) < shares_.served(tenant)) tenant = seq->tenant;
  }
  return tenant;
}

Sequence* WaitingQueue::next(FunctionRef<int(Sequence&)> num_cached) const {
  if (seqs_.empty()) return nullptr;
  const int tenant = next_tenant();
  Sequence* best = nullptr;
  for (const auto& seq : seqs_) {
    if (seq->tenant != tenant) continue;
    if (best == nullptr || runs_before(*seq, *best)) best = seq.get();
    if (best->is_due || policy_ == SchedulePolicy::kFcfs) return best;
  }
  return policy_ == SchedulePolicy::kPrefix ? longest_prefix(tenant, num_cached) : best;
}

Sequence* WaitingQueue::longest_prefix(int tenant, FunctionRef<int(Sequence&)> num_cached) const {
  Sequence* best = nullptr;
  int most = -1;
  int num_asked = 0;
  for (const auto& seq : seqs_) {
    if (seq->tenant != tenant) continue;
    const int cached = num_cached(*seq);
    if (cached > most) {
      most = cached;
      best = seq.get();
    }
    if (++num_asked == kMaxPrefixCandidates) break;
  }
  return best;
}

std::unique_ptr<Sequence> WaitingQueue::admit(const Sequence& seq) {
  for (const auto& other : seqs_) {
    if (other->arrival >= seq.arrival) break;
    if (other->tenant != seq.tenant) continue;
    ++other->num_overtaken;
    other->is_due = other->num_overtaken >= max_overtakes_;
  }
  return remove(seq.id);
}

int WaitingQueue::num_in_group(RequestId group) const {
  return static_cast<int>(std::count_if(seqs_.begin(), seqs_.end(), [group](const auto& seq) {
    return seq->group == group && !seq->is_admitted;
  }));
}

Sequence* WaitingQueue::next_in_group(RequestId group) const {
  const auto it = std::find_if(seqs_.begin(), seqs_.end(), [group](const auto& seq) {
    return seq->group == group && !seq->is_admitted;
  });
  return it == seqs_.end() ? nullptr : it->get();
}

bool WaitingQueue::may_overtake(const Sequence& seq) const {
  return std::none_of(seqs_.begin(), seqs_.end(), [&seq](const auto& other) {
    return other->arrival < seq.arrival && other->tenant == seq.tenant && other->is_due;
  });
}

void WaitingQueue::check_integrity() const {
  DUNLIN_CHECK(std::is_sorted(seqs_.begin(), seqs_.end(),
                              [](const auto& a, const auto& b) { return a->arrival < b->arrival; }),
               "the waiting ones are out of order");
  for (const auto& seq : seqs_) {
    DUNLIN_CHECK(!seq->is_running, "a sequence runs and waits");
    DUNLIN_CHECK(seq->num_overtaken <= max_overtakes_, "a sequence was overtaken too often");
  }
}

}  // namespace dunlin
