#include "cli/hub_folder.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/quote.h"
#include "cli/progress.h"
#include "model/open_model.h"

namespace dunlin::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kComplete = ".complete";
constexpr const char* kIndex = "model.safetensors.index.json";

class Fetcher {
 public:
  Fetcher(const std::string& repo, const fs::path& folder, const HubFileRequest& request,
          bool quiet)
      : repo_(repo), folder_(folder), request_(request), quiet_(quiet) {}

  // true: it is there. false: the repository has none, and `needed` is false.
  Result<bool> fetch(const std::string& file, bool needed) const {
    const fs::path path = folder_ / file;
    std::error_code error;
    if (fs::exists(path, error)) return true;
    ProgressBar bar(fmt::format("fetching {}/{}", repo_, file), quiet_);
    const Outcome outcome = download_file(
        request_(file, path), [&](auto done, auto total) { bar.update_bytes(done, total); });
    if (outcome) return true;
    if (!needed && outcome.error().code() == StatusCode::kNotFound) return false;
    return tl::unexpected(outcome.error());
  }

 private:
  const std::string& repo_;
  const fs::path& folder_;
  const HubFileRequest& request_;
  bool quiet_;
};

// A file's name and nothing else: an index must not reach outside of its folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
             std::string::npos;
}

Result<std::set<std::string>> files_of_index(const fs::path& path) {
  DUNLIN_ASSIGN(file, MappedFile::open(path.string()));
  auto index = parse_json(file.text());
  if (!index) return tl::unexpected(index.error().with_prefix(path.string()));
  const auto map = index->is_object() ? index->find("weight_map") : index->end();
  if (!index->is_object() || map == index->end() || !map->is_object())
    return invalid(path.string() + ": has no object \"weight_map\"");
  std::set<std::string> files;
  for (const auto& item : *map) {
    if (!item.is_string() || !is_plain_name(item.get_ref<const std::string&>()))
      return invalid(fmt::format("{}: names a file outside of the folder: {}", path.string(),
                                 quote_for_message(item.dump())));
    files.insert(item.get<std::string>());
  }
  return files;
}

// What says whether the model can be used at all: before gigabytes of it are fetched.
Outcome fetch_description(const Fetcher& fetcher, const std::string& repo, const fs::path& folder) {
  DUNLIN_TRY(fetcher.fetch("config.json", true));
  const auto described = describe_model((folder / "config.json").string());
  if (!described) {
    // It may be mended there; nothing of value is lost.
    std::error_code ignored;
    fs::remove(folder / "config.json", ignored);
    return tl::unexpected<Status>(described.error());
  }
  DUNLIN_ASSIGN(has_tokenizer, fetcher.fetch("tokenizer.json", false));
  if (has_tokenizer) return {};
  return fail(
      StatusCode::kNotFound,
      fmt::format("{} has no tokenizer.json, the only kind of vocabulary read from folders; "
                  "none of its weights were fetched",
                  repo));
}

}  // namespace

bool hub_folder_is_complete(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kComplete, error);
}

Outcome fetch_hub_folder(const std::string& repo, const fs::path& folder,
                         const HubFileRequest& request, bool quiet) {
  const Fetcher fetcher(repo, folder, request, quiet);
  DUNLIN_TRY(fetch_description(fetcher, repo, folder));
  for (const char* file :
       {"generation_config.json", "tokenizer_config.json", "chat_template.jinja"})
    DUNLIN_TRY(fetcher.fetch(file, false));
  std::error_code ignored;
  DUNLIN_ASSIGN(has_modules, fetcher.fetch("modules.json", false));
  if (has_modules) {
    fs::create_directory(folder / "1_Pooling", ignored);
    DUNLIN_TRY(fetcher.fetch("1_Pooling/config.json", false));
  }
  DUNLIN_ASSIGN(has_index, fetcher.fetch(kIndex, false));
  std::set<std::string> weights = {"model.safetensors"};
  if (has_index) {
    DUNLIN_ASSIGN(named, files_of_index(folder / kIndex));
    weights = std::move(named);
  }
  for (const std::string& file : weights) DUNLIN_TRY(fetcher.fetch(file, true));
  if (!std::ofstream(folder / kComplete)) {
    return fail(StatusCode::kPermissionDenied,
                fmt::format("can't write to {}", (folder / kComplete).string()));
  }
  return {};
}

}  // namespace dunlin::cli
