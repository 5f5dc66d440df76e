// The manual page and shell completions, made from the command table itself, so that they can't
// say anything else than --help does. Written at build time, installed by `cmake --install`.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace dunlin::cli {

std::string man_page(const CLI::App& app);  // roff, section 1
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

}  // namespace dunlin::cli
