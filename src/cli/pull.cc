#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/model_store.h"

namespace dunlin::cli {

void add_pull(CLI::App& app, Invocation& invocation) {
  struct Flags {
    std::string name;
    FetchOptions fetch;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *app.add_subcommand("pull", "Fetch a model into the cache");
  command
      .add_option("NAME", flags->name,
                  "A name from `dunlin list`, ORG/REPO, or hf:ORG/REPO/FILE.gguf")
      ->required();
  command.add_flag("--offline", flags->fetch.offline, "Only look in the cache")
      ->envname("DUNLIN_OFFLINE");
  command.add_flag("--quiet", flags->fetch.quiet, "No progress bar");
  command.footer(
      "Prints the file's path. An interrupted fetch goes on where it was. HF_TOKEN, HF_ENDPOINT "
      "and the\n"
      "proxy variables are honoured; DUNLIN_CACHE moves the cache.\n\nExample:\n  dunlin pull "
      "smollm2-135m");
  command.callback([flags, &invocation] {
    invocation.run = [flags] {
      const auto model = resolve_model(flags->name, flags->fetch);
      if (!model) return report(model.error());
      std::puts(model->path.c_str());
      return 0;
    };
  });
}

}  // namespace dunlin::cli
