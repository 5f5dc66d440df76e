#include "text/jinja/builtins.h"

#include <algorithm>
#include <unordered_map>

namespace dunlin::jinja {
namespace {

std::size_t count_params(std::string_view params) {
  return static_cast<std::size_t>(std::count(params.begin(), params.end(), ' ')) + 1;
}

// Place of `name` among the parameters, or their number.
std::size_t place_of(std::string_view params, std::string_view name) {
  std::size_t place = 0;
  while (!params.empty()) {
    const std::size_t space = params.find(' ');
    if (params.substr(0, space) == name) return place;
    ++place;
    if (space == std::string_view::npos) break;
    params.remove_prefix(space + 1);
  }
  return place;
}

std::string_view param_at(std::string_view params, std::size_t place) {
  while (place-- > 0) params.remove_prefix(params.find(' ') + 1);
  return params.substr(0, params.find(' '));
}

}  // namespace

void bind(const Builtin& builtin, Args& args) {
  const std::string name(builtin.name);
  if (builtin.params == "*") {
    if (args.pos.size() < builtin.required) fault(name + "() misses an argument");
    return;
  }
  const std::size_t count = count_params(builtin.params);
  if (args.pos.size() > count) {
    fault(name + "() takes at most " + std::to_string(count) + " arguments (" +
          std::to_string(args.pos.size()) + " given)");
  }
  args.pos.resize(count);
  for (auto& [key_text, value] : args.named) {
    const std::string& key = key_text->text();
    const std::size_t place = place_of(builtin.params, key);
    if (place == count) fault(name + "() got an unexpected keyword argument '" + key + "'");
    if (!args.pos[place].missing())
      fault(name + "() got multiple values for argument '" + key + "'");
    args.pos[place] = std::move(value);
  }
  args.named.clear();
  for (std::size_t i = 0; i < builtin.required; ++i) {
    if (args.pos[i].missing()) {
      fault(name + "() missing a required argument: '" + std::string(param_at(builtin.params, i)) +
            "'");
    }
  }
}

const Builtin* find_filter(std::string_view name) {
  static const auto kTable = [] {
    std::unordered_map<std::string_view, const Builtin*> table;
    for (const auto part : {text_filters(), layout_filters(), sequence_filters(), select_filters(),
                            number_filters()}) {
      for (const Builtin& builtin : part) table.emplace(builtin.name, &builtin);
    }
    return table;
  }();
  const auto it = kTable.find(name);
  return it != kTable.end() ? it->second : nullptr;
}

Value Function::call(Runtime& runtime, Args& args) {
  if (!self_.missing()) args.pos.insert(args.pos.begin(), self_);
  return invoke(runtime, builtin_, args);
}

void Function::print(Runtime&, StrBuilder& out) const {
  out.append(self_.missing() ? "<function " : "<built-in method ");
  out.append(builtin_.name);
  out.append(">");
}

}  // namespace dunlin::jinja
