#include "engine/fair_share.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace dunlin {

FairShare::FairShare(std::span<const double> shares) {
  for (const double share : shares) {
    DUNLIN_CHECK(share > 0, "a share is positive");
    tenants_.emplace_back().share = share;
  }
  if (tenants_.empty()) tenants_.emplace_back();
}

void FairShare::enter(int tenant) {
  Tenant& entering = at(tenant);
  if (entering.num_open++ > 0) return;
  double least = std::numeric_limits<double>::infinity();
  for (const Tenant& other : tenants_) {
    if (&other != &entering && other.num_open > 0) least = std::min(least, other.served);
  }
  entering.served = std::max(entering.served, least < 1e300 ? least : idle_served_);
}

void FairShare::leave(int tenant) {
  Tenant& leaving = at(tenant);
  if (--leaving.num_open > 0) return;
  const bool is_idle = std::all_of(tenants_.begin(), tenants_.end(),
                                   [](const Tenant& other) { return other.num_open == 0; });
  if (is_idle) idle_served_ = leaving.served;
}

}  // namespace dunlin
