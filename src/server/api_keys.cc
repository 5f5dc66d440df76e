#include "server/api_keys.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/quote.h"
#include "server/access.h"

namespace dunlin {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;
constexpr std::size_t kMinKeyBytes = 8;
constexpr std::size_t kMaxKeyBytes = 512;
constexpr std::size_t kMaxNameBytes = 64;
constexpr double kMinShare = 0.001;
constexpr double kMaxShare = 1000;

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<std::string_view> words;
  while (true) {
    const auto begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return words;
    const auto end = std::min(line.find_first_of(kBlank, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

Result<ApiKey> parse_line(const std::vector<std::string_view>& words) {
  if (words.size() < 2 || words.size() > 3)
    return invalid(fmt::format("has {} words; write NAME KEY, or NAME KEY SHARE", words.size()));
  ApiKey key{std::string(words[0]), std::string(words[1]), 1};
  if (key.name.size() > kMaxNameBytes || !is_printable(key.name))
    return invalid(
        fmt::format("the name must be printable ASCII of at most {} characters", kMaxNameBytes));
  if (key.key.size() < kMinKeyBytes || key.key.size() > kMaxKeyBytes || !is_printable(key.key))
    return invalid(fmt::format("the key of {} must be printable ASCII of {} to {} characters",
                               key.name, kMinKeyBytes, kMaxKeyBytes));
  if (words.size() == 2) return key;
  const char* end = words[2].data() + words[2].size();
  const auto [stopped, error] = std::from_chars(words[2].data(), end, key.share);
  if (error != std::errc() || stopped != end || !(key.share >= kMinShare) || key.share > kMaxShare)
    return invalid(fmt::format("the share of {} must be a number from {} to {}", key.name,
                               kMinShare, kMaxShare));
  return key;
}

Outcome check_unlike(const std::vector<ApiKey>& keys, const ApiKey& added) {
  for (const ApiKey& key : keys) {
    if (key.name == added.name) return invalid(fmt::format("{} has a key already", key.name));
    if (key.key == added.key)
      return invalid(fmt::format("{} has the same key as {}", added.name, key.name));
  }
  return {};
}

}  // namespace

Result<std::vector<ApiKey>> parse_api_keys(std::string_view text, std::string_view name) {
  std::vector<ApiKey> keys;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (words.empty() || words[0].starts_with('#')) continue;
    const std::string place = fmt::format("{}, line {}", name, number);
    auto key = parse_line(words);
    if (!key) return tl::unexpected(key.error().with_prefix(place));
    if (auto unlike = check_unlike(keys, *key); !unlike)
      return tl::unexpected(unlike.error().with_prefix(place));
    if (keys.size() == kMaxApiKeys)
      return invalid(fmt::format("{}: more than {} keys", place, kMaxApiKeys));
    keys.push_back(std::move(*key));
  }
  if (keys.empty()) return invalid(fmt::format("{} holds no key; write lines NAME KEY", name));
  return keys;
}

Result<std::vector<ApiKey>> read_api_keys(const std::string& path) {
  const std::string name = quote_for_message(path);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             &std::fclose);
  struct stat info{};
  if (!file || ::fstat(::fileno(file.get()), &info) != 0)
    return fail(StatusCode::kNotFound, fmt::format("can't read {}", name));
  if ((info.st_mode & (S_IROTH | S_IWOTH)) != 0)
    return fail(StatusCode::kPermissionDenied,
                fmt::format("every user of this machine may read or change {}; run chmod o-rw on "
                            "it",
                            name));
  std::string text(kMaxFileBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0)
    return fail(StatusCode::kNotFound, fmt::format("can't read {}", name));
  if (text.size() > kMaxFileBytes) return invalid(fmt::format("{} is longer than 1 MiB", name));
  return parse_api_keys(text, name);
}

std::optional<int> find_api_key(const std::vector<ApiKey>& keys, std::string_view authorization) {
  int found = -1;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (is_right_key(authorization, keys[i].key)) found = static_cast<int>(i);
  }
  return found < 0 ? std::nullopt : std::optional(found);
}

}  // namespace dunlin
