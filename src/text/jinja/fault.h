// How the template engine fails inside its own folder: it throws a Fault, and Template::parse and
// Template::render (template.h), the only doors of this folder, turn it into a Status. A Python
// interpreter in small would otherwise have to test every expression for an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace dunlin::jinja {

struct Fault {
  enum class Kind {
    kSyntax,   // the template can't be parsed
    kRuntime,  // what Python would call TypeError, ValueError, UndefinedError, ...
    kRaised,   // raise_exception: the message is the template's own
    kLimit,    // a budget is used up
  };
  Kind kind;
  std::string message;
  std::optional<std::uint32_t> pos;  // byte offset into the template, where known
};

[[noreturn]] inline void fault(std::string message) {
  throw Fault{Fault::Kind::kRuntime, std::move(message), std::nullopt};
}
[[noreturn]] inline void syntax_fault(std::uint32_t pos, std::string message) {
  throw Fault{Fault::Kind::kSyntax, std::move(message), pos};
}
[[noreturn]] inline void limit_fault(std::string message) {
  throw Fault{Fault::Kind::kLimit, std::move(message), std::nullopt};
}

}  // namespace dunlin::jinja
