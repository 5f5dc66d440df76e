#include "cli/kv_setting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"
#include "kv/kv_cache_manager.h"

namespace dunlin::cli {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// What stands before and behind the first `mark`; nothing behind where there is none.
std::pair<std::string_view, std::string_view> split(std::string_view text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

Result<KvFormats> parse_formats(std::string_view text) {
  const auto [keys, values] = split(text, ':');
  const auto k = find_kv_format(keys), v = find_kv_format(values.empty() ? keys : values);
  if (k && v) return KvFormats(*k, *v);
  return invalid(fmt::format("{} is no format of the cache; there are {}",
                             quote_for_message(std::string(k ? values : keys)),
                             fmt::join(kv_format_names(), ", ")));
}

}  // namespace

Result<KvSetting> parse_kv_setting(std::string_view text) {
  text = trimmed(text);
  KvSetting setting;
  setting.name = text;
  const auto [first, second] = split(text, '+');
  KvPolicyType type;
  const bool policy_only = second.empty() && parse_kv_policy_type(split(first, ',').first, type);
  if (!policy_only) {
    DUNLIN_ASSIGN(formats, parse_formats(first));
    setting.formats = formats;
  }
  if (policy_only || !second.empty()) {
    DUNLIN_ASSIGN(policy, parse_kv_policy(policy_only ? first : second));
    setting.policy = policy;
  }
  return setting;
}

Result<std::vector<KvSetting>> parse_kv_settings(std::string_view text) {
  std::vector<KvSetting> settings;
  while (!text.empty()) {
    const auto [first, rest] = split(text, ';');
    if (!trimmed(first).empty()) {
      DUNLIN_ASSIGN(setting, parse_kv_setting(first));
      settings.push_back(std::move(setting));
    }
    text = rest;
  }
  if (settings.empty()) return invalid("names no setting; an example: \"int8;quest,budget=1024\"");
  return settings;
}

std::int64_t kv_bytes_held(const KvLayout& layout, const KvPolicy& policy, int context) {
  std::int64_t block_bytes = layout.block_bytes();
  if (policy.type == KvPolicyType::kQuest) block_bytes += layout.block_bounds_bytes();
  if (policy.type == KvPolicyType::kH2o) block_bytes += layout.block_votes_bytes();
  return KvCacheManager::held_blocks(layout, context, context - 1, policy) * block_bytes;
}

}  // namespace dunlin::cli
