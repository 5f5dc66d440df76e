#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/model_store.h"
#include "cli/progress.h"

namespace dunlin::cli {
namespace {

void print_table(const std::vector<StoredModel>& models) {
  std::size_t width = 4;
  for (const StoredModel& model : models) width = std::max(width, model.name.size());
  fmt::print("{:<{}}  {:>9}  {:<12}  {}\n", "NAME", width, "SIZE", "FETCHED", "DESCRIPTION");
  for (const StoredModel& model : models)
    fmt::print("{:<{}}  {:>9}  {:<12}  {}\n", model.name, width, format_bytes(model.size_bytes),
               model.path.empty()
                   ? "no"
                   : fmt::format("{:%Y-%m-%d}",
                                 fmt::localtime(static_cast<std::time_t>(model.modified_unix_s))),
               model.description);
}

void print_json(const std::vector<StoredModel>& models) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const StoredModel& model : models)
    list.push_back({{"name", model.name},
                    {"path", model.path.empty() ? nlohmann::ordered_json()
                                                : nlohmann::ordered_json(model.path)},
                    {"size_bytes", model.size_bytes},
                    {"fetched", !model.path.empty()},
                    {"description", model.description}});
  fmt::print("{}\n", list.dump(2));
}

}  // namespace

void add_list(CLI::App& app, Invocation& invocation) {
  auto output = std::make_shared<std::string>("text");
  CLI::App& command =
      *app.add_subcommand("list", "Show the models known by name and those in the cache");
  command.add_option("--output", *output, "text or json")->check(CLI::IsMember({"text", "json"}));
  command.footer("Example:\n  dunlin list --output json");
  command.callback([output, &invocation] {
    invocation.run = [output] {
      const std::vector<StoredModel> models = list_models();
      *output == "json" ? print_json(models) : print_table(models);
      return 0;
    };
  });
}

}  // namespace dunlin::cli
