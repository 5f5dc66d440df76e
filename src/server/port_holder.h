// Who holds a TCP port, as far as this user may see.
#pragma once

#include <optional>
#include <string>

namespace dunlin {

struct PortHolder {
  int pid = 0;
  std::string name;
};

// The process with a listening socket on `port`; nullopt where there is none or it belongs to
// somebody else.
std::optional<PortHolder> find_port_holder(int port, const std::string& proc_dir = "/proc");

}  // namespace dunlin
