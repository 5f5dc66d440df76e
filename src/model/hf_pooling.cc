#include "model/hf_pooling.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/quote.h"
#include "formats/hf_config.h"

namespace dunlin {
namespace {

constexpr const char* kModules = "modules.json";
constexpr const char* kPooling = "1_Pooling/config.json";

bool is_there(const std::string& folder, const char* name) {
  std::error_code ignored;
  return std::filesystem::exists(folder + "/" + name, ignored);
}

// Refuses modules that would change the embeddings.
Outcome check_modules(const std::string& folder) {
  if (!is_there(folder, kModules)) return {};
  const std::string path = folder + "/" + kModules;
  DUNLIN_ASSIGN(file, MappedFile::open(path));
  auto modules = parse_json(file.text());
  if (!modules) return tl::unexpected<Status>(modules.error().with_prefix(path));
  if (!modules->is_array()) return invalid(path + ": is not a JSON array");
  for (const nlohmann::json& module : *modules) {
    const auto type = module.is_object() ? module.find("type") : module.end();
    if (!module.is_object() || type == module.end() || !type->is_string())
      return invalid(path + ": has a module without a \"type\"");
    const auto& name = type->get_ref<const std::string&>();
    const std::string last = name.substr(name.find_last_of('.') + 1);
    if (last == "Transformer" || last == "Pooling" || last == "Normalize") continue;
    return fail(StatusCode::kUnimplemented,
                fmt::format("{}: module {} is not supported; supported are Transformer, Pooling "
                            "and Normalize",
                            path, quote_for_message(last)));
  }
  return {};
}

// Each mode has a flag of its own, or all are one word.
Result<Pooling> read_modes(const HfConfig& config) {
  constexpr std::pair<const char*, Pooling> kKnown[] = {
      {"mean", Pooling::kMean}, {"cls", Pooling::kCls}, {"lasttoken", Pooling::kLast}};
  constexpr std::pair<const char*, const char*> kFlags[] = {
      {"pooling_mode_cls_token", "cls"},
      {"pooling_mode_mean_tokens", "mean"},
      {"pooling_mode_lasttoken", "lasttoken"},
      {"pooling_mode_max_tokens", "max"},
      {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
      {"pooling_mode_weightedmean_tokens", "weightedmean"}};
  std::string modes = config.word("pooling_mode", "");
  for (const auto& [flag, mode] : kFlags)
    if (config.flag(flag, false)) modes += (modes.empty() ? "" : " and ") + std::string(mode);
  DUNLIN_TRY(config.outcome());
  for (const auto& [mode, pooling] : kKnown)
    if (modes == mode) return pooling;
  return fail(StatusCode::kUnimplemented,
              fmt::format("{}: pooling {} is not supported; supported are mean, cls and lasttoken",
                          config.path(), modes.empty() ? "none" : quote_for_message(modes)));
}

}  // namespace

Result<std::optional<Pooling>> read_folder_pooling(const std::string& folder) {
  DUNLIN_TRY(check_modules(folder));
  if (!is_there(folder, kPooling)) return std::optional<Pooling>();
  DUNLIN_ASSIGN(config, HfConfig::read(folder, kPooling));
  DUNLIN_ASSIGN(pooling, read_modes(config));
  return std::optional(pooling);
}

}  // namespace dunlin
