#include "kv/kv_policy.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "base/quote.h"
#include "kv/block_table.h"
#include "kv/kv_layout.h"

namespace dunlin {
namespace {

constexpr std::string_view kNames[kNumKvPolicies] = {"full", "window", "quest", "h2o", "snapkv"};

constexpr int kMaxSinks = 1024, kMaxObserved = 1024, kMaxWindow = 1 << 20, kMaxPool = 63;
// Of a budget that is a share of a short prompt.
constexpr int kMinShared = 128;

constexpr int whole_blocks(int num_tokens) { return num_tokens / kBlockSize * kBlockSize; }

// "name=number", or "name=number%" where that may be.
Outcome read_number(std::string_view text, KvPolicy& policy) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const auto numbers = numbers_of(policy);
  const auto number = std::ranges::find(numbers, text.substr(0, equals), &KvPolicyNumber::name);
  if (number == numbers.end()) {
    return invalid(fmt::format("{} is not known of the policy {}", quote_for_message(text),
                               name_of(policy.type)));
  }
  std::string_view digits = text.substr(std::min(equals + 1, text.size()));
  const bool is_share = number->share != nullptr && digits.ends_with('%');
  if (is_share) digits.remove_suffix(1);
  if (number->share != nullptr) *number->share = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(),
                                            is_share ? *number->share : *number->value);
  if (is_share && *number->share == 0) *number->share = -1;  // no share at all is none
  if (error != std::errc() || end != digits.data() + digits.size())
    return invalid(fmt::format("{} has no whole number", quote_for_message(text)));
  return {};
}

}  // namespace

int KvPolicy::first_kept(int position) const {
  if (type != KvPolicyType::kWindow || position < window) return 0;
  const int first = num_blocks_for(position + 1 - window) * kBlockSize;
  return first > sinks ? first : 0;
}

int KvPolicy::num_pages(int position, int num_prompt_tokens) const {
  if (type != KvPolicyType::kQuest || position < num_prompt_tokens) return 0;
  const int pages = budget / kBlockSize;
  return position / kBlockSize + 1 > pages ? pages : 0;
}

int KvPolicy::num_exact_tokens(int num_prompt_tokens) const {
  switch (type) {
    case KvPolicyType::kFull: return kUnbounded;
    case KvPolicyType::kWindow: return window + sinks / kBlockSize * kBlockSize;
    case KvPolicyType::kQuest: return std::max(budget, num_prompt_tokens);
    case KvPolicyType::kH2o:
    case KvPolicyType::kSnapKv: return first_vote(num_prompt_tokens);
  }
  return 0;
}

// Of h2o: slots of heavy hitters, all that are full, and how many recent ones join the heavy
// hitters at once. A prompt compacts rarely, so that its steps are worth their while, and is then
// left with fewer recent ones, so that it never holds more.
struct KvPolicy::Heavy {
  int num_heavy, end, stride;
};

KvPolicy::Heavy KvPolicy::heavy(int num_prompt_tokens) const {
  int all = budget;
  if (share > 0) {
    const auto wanted = static_cast<int>(std::int64_t{num_prompt_tokens} * share / 100);
    all = std::clamp(whole_blocks(wanted), kMinShared, kMaxWindow);
  }
  const int newest = recent > 0 ? std::min(recent, all - kBlockSize) : whole_blocks(all / 2);
  constexpr int kMostAtOnce = 64;
  const int stride = std::clamp(whole_blocks(newest / 4), kBlockSize, kMostAtOnce);
  return {all - newest, all + kBlockSize, stride};
}

int KvPolicy::first_vote(int num_prompt_tokens) const {
  if (type == KvPolicyType::kH2o) return heavy(num_prompt_tokens).num_heavy;
  if (type == KvPolicyType::kSnapKv && !compaction(num_prompt_tokens, num_prompt_tokens).is_none())
    return num_prompt_tokens - observed;
  return kUnbounded;
}

int KvPolicy::end_of_votes(int num_prompt_tokens) const {
  return type == KvPolicyType::kSnapKv ? num_prompt_tokens : kUnbounded;
}

KvCompaction KvPolicy::compaction(int num_tokens, int num_prompt_tokens) const {
  if (type == KvPolicyType::kSnapKv) {
    const int from = whole_blocks(num_tokens - observed), to = budget - observed;
    if (num_tokens != num_prompt_tokens || from <= to) return {};
    return {from, to, pool};
  }
  if (type != KvPolicyType::kH2o || num_tokens == 0) return {};
  const int num_dropped =
      num_slots(num_tokens - 1, num_prompt_tokens) + 1 - num_slots(num_tokens, num_prompt_tokens);
  if (num_dropped == 0) return {};
  const int to = heavy(num_prompt_tokens).num_heavy;
  return {to + num_dropped, to};
}

int KvPolicy::num_targets(int num_prompt_tokens) const {
  return type == KvPolicyType::kH2o ? heavy(num_prompt_tokens).num_heavy
                                    : compaction(num_prompt_tokens, num_prompt_tokens).to;
}

int KvPolicy::num_slots(int num_tokens, int num_prompt_tokens) const {
  if (type == KvPolicyType::kSnapKv) {
    if (num_tokens < num_prompt_tokens) return num_tokens;
    return num_tokens - compaction(num_prompt_tokens, num_prompt_tokens).num_dropped();
  }
  if (type != KvPolicyType::kH2o) return num_tokens;
  const auto [num_heavy, end, stride] = heavy(num_prompt_tokens);
  const auto grown = [end = end](int slots, int step) {
    return slots < end ? slots : end - step + (slots - end) % step;
  };
  const int in_prompt = std::min(num_tokens, num_prompt_tokens);
  return grown(grown(in_prompt, stride) + num_tokens - in_prompt, kBlockSize);
}

int KvPolicy::step_end(int num_tokens, int num_prompt_tokens) const {
  const int first = first_vote(num_prompt_tokens);
  if (num_tokens < first) return first;
  if (type == KvPolicyType::kH2o) {
    const int left = heavy(num_prompt_tokens).end - num_slots(num_tokens, num_prompt_tokens);
    return num_tokens + left;
  }
  return num_tokens < end_of_votes(num_prompt_tokens) ? end_of_votes(num_prompt_tokens)
                                                      : kUnbounded;
}

int KvPolicy::max_voted_slots(int num_prompt_tokens) const {
  return type == KvPolicyType::kH2o ? heavy(num_prompt_tokens).end : num_prompt_tokens;
}

int KvPolicy::num_sink_blocks() const { return gives_back() ? num_blocks_for(sinks) : 0; }

int KvPolicy::max_blocks(int num_tokens, int max_chunk) const {
  const int all = num_blocks_for(num_tokens);
  if (type == KvPolicyType::kH2o) return std::min(all, heavy(num_tokens).end / kBlockSize);
  if (!gives_back()) return all;
  // A step of n tokens begins with at most window - 1 tokens that its first query sees besides.
  const int chunk = std::min(max_chunk, num_tokens);
  return std::min(all, num_sink_blocks() + num_blocks_for(window + chunk - 1));
}

bool KvPolicy::operator==(const KvPolicy& other) const {
  if (type != other.type) return false;
  switch (type) {
    case KvPolicyType::kFull: return true;
    case KvPolicyType::kWindow: return sinks == other.sinks && window == other.window;
    case KvPolicyType::kQuest: return budget == other.budget;
    case KvPolicyType::kH2o:
      return share == other.share && recent == other.recent &&
             (share > 0 || budget == other.budget);
    case KvPolicyType::kSnapKv:
      return budget == other.budget && observed == other.observed && pool == other.pool;
  }
  return false;
}

std::vector<KvPolicyNumber> numbers_of(KvPolicy& policy) {
  switch (policy.type) {
    case KvPolicyType::kFull: break;
    case KvPolicyType::kWindow:
      return {{"sinks", &policy.sinks, 0, kMaxSinks, 1},
              {"window", &policy.window, kBlockSize, kMaxWindow, kBlockSize}};
    case KvPolicyType::kQuest:
      return {{"budget", &policy.budget, 2 * kBlockSize, kMaxWindow, kBlockSize}};
    case KvPolicyType::kH2o:
      return {{"budget", &policy.budget, 2 * kBlockSize, kMaxWindow, kBlockSize, &policy.share},
              {"recent", &policy.recent, 0,
               policy.share != 0 ? kMaxWindow : policy.budget - kBlockSize, kBlockSize}};
    case KvPolicyType::kSnapKv:
      return {{"budget", &policy.budget, 2 * kBlockSize, kMaxWindow, kBlockSize},
              {"window", &policy.observed, kBlockSize,
               std::min(kMaxObserved, policy.budget - kBlockSize), kBlockSize},
              {"pool", &policy.pool, 1, kMaxPool, 2}};
  }
  return {};
}

std::string range_of(const KvPolicyNumber& number) {
  const bool is_multiple = number.min % number.unit == 0;
  return fmt::format("{}in [{}, {}]",
                     number.unit == 1 ? ""
                     : is_multiple    ? fmt::format("a multiple of {} ", number.unit)
                                      : "odd ",
                     number.min, number.max);
}

Outcome validate(KvPolicy policy) {
  for (const KvPolicyNumber& number : numbers_of(policy)) {
    if (number.share != nullptr && *number.share != 0) {
      if (*number.share > 0 && *number.share <= 100) continue;
      return invalid(fmt::format("{} must be from 1% to 100%, or a number of tokens", number.name));
    }
    if (*number.value >= number.min && *number.value <= number.max &&
        (*number.value - number.min) % number.unit == 0) {
      continue;
    }
    return invalid(
        fmt::format("{} must be {}, got {}", number.name, range_of(number), *number.value));
  }
  return {};
}

Result<KvPolicy> parse_kv_policy(std::string_view text) {
  KvPolicy policy;
  const std::size_t name_end = std::min(text.find(','), text.size());
  const std::string_view name = text.substr(0, name_end);
  if (!parse_kv_policy_type(name, policy.type)) {
    return invalid(fmt::format("{} is not a KV policy; there are {}", quote_for_message(name),
                               kv_policy_names()));
  }
  text.remove_prefix(name_end);
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::size_t end = std::min(text.find(','), text.size());
    DUNLIN_TRY(read_number(text.substr(0, end), policy));
    text.remove_prefix(end);
  }
  DUNLIN_TRY(validate(policy));
  return policy;
}

std::string to_string(const KvPolicy& policy) {
  KvPolicy copy = policy;
  std::string text(name_of(policy.type));
  for (const KvPolicyNumber& number : numbers_of(copy)) {
    const bool is_share = number.share != nullptr && *number.share != 0;
    text += is_share ? fmt::format(",{}={}%", number.name, *number.share)
                     : fmt::format(",{}={}", number.name, *number.value);
  }
  return text;
}

bool parse_kv_policy_type(std::string_view name, KvPolicyType& type) {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (name != kNames[i]) continue;
    type = static_cast<KvPolicyType>(i);
    return true;
  }
  return false;
}

std::string_view name_of(KvPolicyType type) { return kNames[static_cast<std::size_t>(type)]; }

std::string kv_policy_names() { return fmt::format("{}", fmt::join(kNames, ", ")); }

}  // namespace dunlin
