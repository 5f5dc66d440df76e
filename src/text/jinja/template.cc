#include "text/jinja/template.h"

#include <algorithm>
#include <new>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "text/jinja/from_json.h"
#include "text/jinja/interp.h"
#include "text/jinja/parser.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

// Published templates are under 30 kB.
constexpr std::size_t kLargestSource = 1u << 20;

std::string place(std::string_view source, std::uint32_t pos) {
  const std::string_view before = source.substr(0, std::min<std::size_t>(pos, source.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  return fmt::format("line {}, column {}", line, count_code_points(before.substr(start)) + 1);
}

Status to_status(const Fault& fault, std::string_view source, std::uint32_t pos) {
  switch (fault.kind) {
    case Fault::Kind::kRaised: return Status(StatusCode::kInvalidArgument, fault.message);
    case Fault::Kind::kLimit:
      return Status(StatusCode::kResourceExhausted,
                    fmt::format("{}: {}", place(source, pos), fault.message));
    default:
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{}: {}", place(source, fault.pos.value_or(pos)), fault.message));
  }
}

}  // namespace

struct Template::Impl {
  std::string source;  // normalised
  Tree tree;
};

Template::Template(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

Result<Template> Template::parse(std::string_view source) {
  if (source.size() > kLargestSource) return invalid("the template is larger than 1 MiB");
  if (!valid_utf8(source)) return invalid("the template is not valid UTF-8");
  auto impl = std::make_unique<Impl>();
  impl->source = normalise_newlines(source);
  try {
    impl->tree = jinja::parse(impl->source);
  } catch (const Fault& fault) {
    return tl::unexpected<Status>(to_status(fault, impl->source, 0));
  }
  return Template(std::move(impl));
}

Result<Rendered> Template::render(const nlohmann::ordered_json& vars, long long now,
                                  IsInput is_input, const Limits& limits) const {
  if (!vars.is_object()) return invalid("the variables of a template must be a JSON object");
  Budget budget(limits);
  Heap heap(budget);
  Runtime runtime(budget, heap, now);
  std::optional<Interp> interp;
  StrBuilder out(budget);
  try {
    interp.emplace(impl_->tree, runtime);
    for (const auto& [name, value] : vars.items()) {
      interp->define(name, from_json(runtime, value, is_input(name)));
    }
    interp->run(out);
  } catch (const Fault& fault) {
    return tl::unexpected<Status>(to_status(fault, impl_->source, interp ? interp->pos() : 0));
  } catch (const std::bad_alloc&) {
    return fail(StatusCode::kResourceExhausted, "not enough memory to render the template");
  }
  return Rendered{out.text(), out.input()};
}

}  // namespace dunlin::jinja
