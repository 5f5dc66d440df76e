// Where variables live. Bodies of loops, macros, with and blocks have a scope each; `if` has none.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/value.h"

namespace dunlin::jinja {

class Scope : public Object {
 public:
  Scope(Heap& heap, std::shared_ptr<Scope> parent) : Object(heap), parent_(std::move(parent)) {}
  ~Scope() override { bury_all(); }
  std::string_view type_name() const override { return "scope"; }
  void release(std::vector<Value>& out) override {
    for (auto& [name, value] : variables_) out.push_back(std::move(value));
    variables_.clear();
  }

  // The variable here or in the nearest scope around; null where there is none.
  const Value* find(NameId name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
      for (const auto& [id, value] : scope->variables_) {
        if (id == name) return &value;
      }
    }
    return nullptr;
  }
  void set(NameId name, Value value) {
    for (auto& [id, old] : variables_) {
      if (id == name) {
        old = std::move(value);
        return;
      }
    }
    variables_.emplace_back(name, std::move(value));
  }
  void clear() { bury_all(); }

 private:
  std::vector<std::pair<NameId, Value>> variables_;
  std::shared_ptr<Scope> parent_;
};

using ScopePtr = std::shared_ptr<Scope>;

}  // namespace dunlin::jinja
