// The door of the template engine: source in, rendered text with its input ranges out.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "dunlin/status.h"
#include "text/jinja/budget.h"
#include "text/jinja/str.h"

namespace dunlin::jinja {

struct Rendered {
  std::string text;
  std::vector<Span> input;  // bytes of `text` that came from the request; sorted, disjoint
};

// Which top-level variables are the request's own words.
using IsInput = bool (*)(std::string_view variable);

// A parsed template. Immutable; render() may run on several threads at once.
class Template {
 public:
  // kInvalidArgument "line L, column C: ..." where the source is no template.
  static Result<Template> parse(std::string_view source);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  // `vars` is an object: the template's variables. `now` is Unix seconds. kInvalidArgument with
  // the template's own words on raise_exception, with line and column on other errors;
  // kResourceExhausted past `limits`.
  Result<Rendered> render(const nlohmann::ordered_json& vars, long long now, IsInput is_input,
                          const Limits& limits = {}) const;

 private:
  struct Impl;
  explicit Template(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dunlin::jinja
