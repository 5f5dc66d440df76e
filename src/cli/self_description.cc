#include "cli/self_description.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

#include "cli/version.h"

namespace dunlin::cli {
namespace {

// Calls visit(words, command) for every command, parents first: words is "bench batched".
void each_command(const CLI::App& app, const std::string& prefix,
                  const std::function<void(const std::string&, const CLI::App&)>& visit) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string words =
        prefix.empty() ? command->get_name() : prefix + " " + command->get_name();
    visit(words, *command);
    each_command(*command, words, visit);
  }
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

std::vector<std::string> subcommand_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '-') out += '\\';
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    out += c;
  }
  return out;
}

std::string options_roff(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name(false, true);
    out += fmt::format(".TP\n.B {}\n{}", roff(name), roff(option->get_description()));
    if (!option->get_envname().empty())
      out += fmt::format(" (environment: {})", roff(option->get_envname()));
    if (!option->get_default_str().empty())
      out += fmt::format(" (default: {})", roff(option->get_default_str()));
    out += "\n";
  }
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// "dunlin bench batched" -> "--threads --npp ..."; the words a shell offers behind it.
std::string words_behind(const CLI::App& command) {
  auto words = subcommand_names(command);
  const auto flags = flags_of(command);
  words.insert(words.end(), flags.begin(), flags.end());
  return joined(words);
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string out = fmt::format(
      ".TH DUNLIN 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\ndunlin \\- run large language models "
      "on the CPU\n",
      version_text());
  out += ".SH SYNOPSIS\n.B dunlin\n.I COMMAND\n.RI [ OPTIONS ]\n.SH DESCRIPTION\n" +
         roff(app.get_description()) + "\n.SH COMMANDS\n";
  each_command(app, "", [&](const std::string& words, const CLI::App& command) {
    out += fmt::format(".SS dunlin {}\n{}\n{}", roff(words), roff(command.get_description()),
                       options_roff(command));
    if (!command.get_footer().empty())
      out += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command.get_footer()));
  });
  out += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", roff(app.get_footer()));
  out +=
      ".SH FILES\n.TP\n.I ~/.cache/dunlin\nFetched models; DUNLIN_CACHE "
      "moves it.\n.TP\n.I ~/.local/state/dunlin/history\nWhat was typed in the chat; "
      "DUNLIN_HISTORY names "
      "another file, or none where it is empty.\n";
  out +=
      ".SH EXIT STATUS\n0: done. 1: it failed, and one line on standard error says why. 2: wrong "
      "usage. 130: stopped by Ctrl\\-C. 141: the reader of standard output went away.\n";
  return out;
}

std::string bash_completion(const CLI::App& app) {
  std::string cases;
  each_command(app, "", [&](const std::string& words, const CLI::App& command) {
    cases += fmt::format("    '{}') words='{}' ;;\n", words, words_behind(command));
  });
  return fmt::format(
      "# bash completion for dunlin\n"
      "_dunlin() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} command= word words='{}'\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    case $word in -*) ;; *) [[ ' {} ' == *\" $word \"* ]] && command=\"${{command:+$command "
      "}}$word\" ;; esac\n"
      "  done\n"
      "  case $command in\n{}  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  case $command in run|serve|embed|bench|'bench batched'|inspect|tokenize|pull|rm)\n"
      "    [[ $current == -* ]] || COMPREPLY+=($(compgen -W \"$(dunlin list --output json "
      "2>/dev/null | sed -n 's/.*\"name\": \"\\(.*\\)\",/\\1/p')\" -- \"$current\")) ;;\n"
      "  esac\n"
      "}}\n"
      "complete -o default -F _dunlin dunlin\n",
      joined(subcommand_names(app)),
      [&] {
        std::vector<std::string> all;
        each_command(app, "", [&](const std::string&, const CLI::App& command) {
          all.push_back(command.get_name());
        });
        return joined(all);
      }(),
      cases);
}

std::string zsh_completion(const CLI::App& app) {
  return "#compdef dunlin\nautoload -Uz bashcompinit && bashcompinit\n" + bash_completion(app);
}

std::string fish_completion(const CLI::App& app) {
  std::string out = "# fish completion for dunlin\n";
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    out += fmt::format("complete -c dunlin -n __fish_use_subcommand -a {} -d \"{}\"\n",
                       command->get_name(), command->get_description());
    for (const std::string& flag : flags_of(*command))
      out += fmt::format("complete -c dunlin -n '__fish_seen_subcommand_from {}' -l {}\n",
                         command->get_name(), flag.substr(2));
  }
  return out;
}

}  // namespace dunlin::cli
