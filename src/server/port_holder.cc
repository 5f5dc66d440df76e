#include "server/port_holder.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

namespace dunlin {
namespace {

namespace fs = std::filesystem;

// Inodes of listening sockets on the port. Columns of /proc/net/tcp: slot, local address:port in
// hexadecimal, remote, state (0A: listening), queues, timer, retransmits, user, timeout, inode.
void add_listening_inodes(const std::string& table, int port, std::set<std::string>& inodes) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream columns(line);
    std::vector<std::string> words;
    for (std::string word; columns >> word;) words.push_back(word);
    if (words.size() < 10 || words[3] != "0A") continue;
    const auto colon = words[1].rfind(':');
    if (colon == std::string::npos) continue;
    int local_port = 0;
    std::from_chars(words[1].data() + colon + 1, words[1].data() + words[1].size(), local_port, 16);
    if (local_port == port && words[9] != "0") inodes.insert("socket:[" + words[9] + "]");
  }
}

bool has_socket(const fs::path& process, const std::set<std::string>& inodes) {
  std::error_code error;
  for (fs::directory_iterator it(process / "fd", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code link_error;
    const fs::path target = fs::read_symlink(it->path(), link_error);
    if (!link_error && inodes.count(target.string()) > 0) return true;
  }
  return false;
}

}  // namespace

std::optional<PortHolder> find_port_holder(int port, const std::string& proc_dir) {
  std::set<std::string> inodes;
  add_listening_inodes(proc_dir + "/net/tcp", port, inodes);
  add_listening_inodes(proc_dir + "/net/tcp6", port, inodes);
  if (inodes.empty()) return std::nullopt;
  std::error_code error;
  for (fs::directory_iterator it(proc_dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    int pid = 0;
    const auto [stop, parse_error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parse_error != std::errc() || stop != name.data() + name.size()) continue;
    if (!has_socket(it->path(), inodes)) continue;
    PortHolder holder{pid, {}};
    std::ifstream comm(it->path() / "comm");
    std::getline(comm, holder.name);
    return holder;
  }
  return std::nullopt;
}

}  // namespace dunlin
