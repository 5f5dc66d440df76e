// One way to keep the KV cache, as `eval kv` compares them: a format and a policy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "kv/kv_layout.h"
#include "kv/kv_policy.h"

namespace dunlin::cli {

struct KvSetting {
  std::string name;  // as it was written
  KvFormats formats;
  KvPolicy policy;
};

// "int8", "int8:int4" (keys, values), "quest,budget=1024" (f16) or "int8+window,window=512".
Result<KvSetting> parse_kv_setting(std::string_view text);

// Separated by semicolons; at least one.
Result<std::vector<KvSetting>> parse_kv_settings(std::string_view text);

// What a sequence of `context` tokens, all but the last of them its prompt, holds in the cache.
// `layout` has the setting's formats.
std::int64_t kv_bytes_held(const KvLayout& layout, const KvPolicy& policy, int context);

}  // namespace dunlin::cli
