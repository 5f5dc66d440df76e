// Calling macros: how positional, named and special arguments meet the parameters.
#include "text/jinja/interp.h"

namespace dunlin::jinja {

Value Macro::attribute(Runtime& runtime, const Value&, std::string_view name) {
  if (name == "name") return def_.name.empty() ? Value::none() : runtime.str(def_.name);
  if (name == "catch_kwargs") return Value::boolean(def_.uses_kwargs);
  if (name == "catch_varargs") return Value::boolean(def_.uses_varargs);
  if (name == "caller") return Value::boolean(def_.uses_caller);
  if (name != "arguments") return Value();
  std::vector<Value> names;
  for (const Param& param : def_.params) names.push_back(Value::string(param.text));
  return runtime.tuple(std::move(names));
}

void Macro::print(Runtime&, StrBuilder& out) const {
  out.append("<Macro ");
  out.append(def_.name.empty() ? "anonymous" : "'" + def_.name + "'");
  out.append(">");
}

void Macro::set(Runtime&, Scope& scope, std::string_view name, Value value) const {
  NameId id = 0;
  if (interp_.tree_.names.find(name, id)) scope.set(id, std::move(value));
}

// caller, kwargs and varargs: each exists only where the body says its name.
void Macro::bind_special(Runtime& runtime, Args& args, Scope& scope) {
  const std::size_t count = def_.params.size();
  if (def_.uses_caller && !def_.explicit_caller) {
    Value caller = args.take("caller");
    if (caller.missing()) caller = Value::undefined("No caller defined");
    set(runtime, scope, "caller", std::move(caller));
  }
  if (def_.uses_kwargs) {
    auto rest = runtime.dict();
    for (auto& [name, value] : args.named) rest->set(Value::string(name), std::move(value));
    set(runtime, scope, "kwargs", Value::object(rest));
  } else if (!args.named.empty()) {
    fault("macro '" + def_.name + "' takes no keyword argument '" + args.named[0].first->text() +
          "'");
  }
  const std::size_t used = std::min(count, args.pos.size());
  if (def_.uses_varargs) {
    const auto rest = args.pos.begin() + static_cast<std::ptrdiff_t>(used);
    set(runtime, scope, "varargs", runtime.tuple({rest, args.pos.end()}));
  } else if (args.pos.size() > count) {
    fault("macro '" + def_.name + "' takes not more than " + std::to_string(count) +
          " argument(s)");
  }
}

Value Macro::call(Runtime& runtime, Args& args) {
  const Interp::Deeper deeper(interp_);
  const ScopePtr scope = std::make_shared<Scope>(runtime.heap(), closure_);
  std::vector<Value> given(def_.params.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    given[i] = i < args.pos.size() ? args.pos[i] : args.take(def_.params[i].text->text());
  }
  bind_special(runtime, args, *scope);
  StrBuilder out(runtime.budget());
  const Interp::Inside inside(interp_, scope, &out);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Param& param = def_.params[i];
    if (given[i].missing()) {
      given[i] = param.fallback != nullptr
                     ? interp_.eval(*param.fallback)
                     : Value::undefined("parameter '" + param.text->text() + "' was not provided");
    }
    scope->set(param.name, given[i]);
  }
  interp_.exec(def_.body);
  return Value::string(out.finish());
}

}  // namespace dunlin::jinja
