// FairShare: how much each tenant was served, so that the one that is furthest behind comes next.
//
// Each tenant has a virtual counter: computed tokens over its share. Whoever has work keeps up with
// the others; who comes back after a pause begins at the least of those who had work, so that
// nobody saves up (virtual token counter: Sheng et al., "Fairness in Serving Large Language
// Models", 2024; here every computed token counts one, prompt tokens found in the cache none).
//
// Owned by the engine thread; allocates only in its constructor.
#pragma once

#include <span>
#include <vector>

namespace dunlin {

class FairShare {
 public:
  // Positive shares; none: one tenant.
  explicit FairShare(std::span<const double> shares);

  int num_tenants() const { return static_cast<int>(tenants_.size()); }

  // A request of the tenant came, or is gone.
  void enter(int tenant);
  void leave(int tenant);
  void charge(int tenant, int num_tokens) { at(tenant).served += num_tokens / at(tenant).share; }
  double served(int tenant) const { return at(tenant).served; }

  // Running requests, for the division of slots.
  void note_running(int tenant, int change) { at(tenant).num_running += change; }
  int num_running(int tenant) const { return at(tenant).num_running; }
  // Slots over share, with `more` slots above those it has.
  double slot_load(int tenant, int more) const {
    return (at(tenant).num_running + more) / at(tenant).share;
  }

 private:
  struct Tenant {
    double share = 1;
    double served = 0;
    int num_open = 0;
    int num_running = 0;
  };
  Tenant& at(int tenant) { return tenants_[static_cast<std::size_t>(tenant)]; }
  const Tenant& at(int tenant) const { return tenants_[static_cast<std::size_t>(tenant)]; }

  std::vector<Tenant> tenants_;
  double idle_served_ = 0;  // of the last one that left when no other had work
};

}  // namespace dunlin
