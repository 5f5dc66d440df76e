#include "kv/kv_policy.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/quote.h"
#include "kv/block_table.h"
#include "kv/kv_layout.h"

namespace dunlin {
namespace {

constexpr std::string_view kNames[kNumKvPolicies] = {"full", "window", "quest"};

// "name=number".
Outcome read_number(std::string_view text, KvPolicy& policy) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const auto numbers = numbers_of(policy);
  const auto number = std::ranges::find(numbers, text.substr(0, equals), &KvPolicyNumber::name);
  if (number == numbers.end()) {
    return invalid(fmt::format("{} is not known of the policy {}", quote_for_message(text),
                               name_of(policy.type)));
  }
  const std::string_view digits = text.substr(std::min(equals + 1, text.size()));
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), *number->value);
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
  }
  return 0;
}

int KvPolicy::num_sink_blocks() const { return gives_back() ? num_blocks_for(sinks) : 0; }

int KvPolicy::max_blocks(int num_tokens, int max_chunk) const {
  const int all = num_blocks_for(num_tokens);
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
  }
  return false;
}

std::vector<KvPolicyNumber> numbers_of(KvPolicy& policy) {
  constexpr int kMaxSinks = 1024, kMaxWindow = 1 << 20;
  switch (policy.type) {
    case KvPolicyType::kFull: break;
    case KvPolicyType::kWindow:
      return {{"sinks", &policy.sinks, 0, kMaxSinks, 1},
              {"window", &policy.window, kBlockSize, kMaxWindow, kBlockSize}};
    case KvPolicyType::kQuest:
      return {{"budget", &policy.budget, 2 * kBlockSize, kMaxWindow, kBlockSize}};
  }
  return {};
}

Outcome validate(KvPolicy policy) {
  for (const KvPolicyNumber& number : numbers_of(policy)) {
    if (*number.value >= number.min && *number.value <= number.max &&
        *number.value % number.unit == 0) {
      continue;
    }
    return invalid(
        fmt::format("{} must be {}in [{}, {}], got {}", number.name,
                    number.unit == 1 ? "" : fmt::format("a multiple of {} ", number.unit),
                    number.min, number.max, *number.value));
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
  for (const KvPolicyNumber& number : numbers_of(copy))
    text += fmt::format(",{}={}", number.name, *number.value);
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
