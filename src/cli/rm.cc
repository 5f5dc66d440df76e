#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/model_store.h"
#include "cli/progress.h"

namespace dunlin::cli {

void add_rm(CLI::App& app, Invocation& invocation) {
  auto name = std::make_shared<std::string>();
  CLI::App& command = *app.add_subcommand("rm", "Remove a model from the cache");
  command.add_option("NAME", *name, "A name from `dunlin list`")->required();
  command.footer(
      "Only files in the cache are removed, never one elsewhere.\n\nExample:\n  dunlin rm "
      "gemma3-270m");
  command.callback([name, &invocation] {
    invocation.run = [name] {
      const auto freed = remove_model(*name);
      if (!freed) return report(freed.error());
      fmt::print(stderr, "removed {}, {} freed\n", *name, format_bytes(*freed));
      return 0;
    };
  });
}

}  // namespace dunlin::cli
