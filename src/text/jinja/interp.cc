#include "text/jinja/interp.h"

#include "text/jinja/compare.h"

namespace dunlin::jinja {

Interp::Interp(const Tree& tree, Runtime& runtime) : tree_(tree), runtime_(runtime) {
  auto globals = std::make_shared<Scope>(runtime.heap(), nullptr);
  for (auto& [name, value] : make_globals(runtime)) {
    NameId id = 0;
    if (tree.names.find(name, id)) globals->set(id, std::move(value));
  }
  root_ = std::make_shared<Scope>(runtime.heap(), std::move(globals));
  scope_ = root_;
}

void Interp::define(std::string_view name, Value value) {
  NameId id = 0;
  if (tree_.names.find(name, id)) root_->set(id, std::move(value));
}

void Interp::run(StrBuilder& out) {
  out_ = &out;
  exec(tree_.body);
}

Interp::Flow Interp::exec(const Body& body) {
  for (const auto& stmt : body) {
    const Flow flow = exec(*stmt);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interp::Flow Interp::exec(const Stmt& stmt) {
  const Deeper deeper(*this);
  pos_ = stmt.pos;
  switch (stmt.kind) {
    case StmtKind::kText: out_->append(*stmt.text); break;
    case StmtKind::kOutput: output(stmt); break;
    case StmtKind::kIf: return exec_if(stmt);
    case StmtKind::kFor: return exec_for(stmt);
    case StmtKind::kSet: assign(stmt.target, eval(*stmt.exprs[0]), *scope_); break;
    case StmtKind::kSetBlock: return exec_set_block(stmt);
    case StmtKind::kWith: return exec_with(stmt);
    case StmtKind::kMacro:
      scope_->set(stmt.name, runtime_.make<Macro>(*this, *stmt.macro, scope_));
      break;
    case StmtKind::kCall: exec_call(stmt); break;
    case StmtKind::kFilterBlock: return exec_filter_block(stmt);
    case StmtKind::kScope: {
      const Inside inside(*this, inner_scope());
      return exec(stmt.bodies[0]);
    }
    case StmtKind::kBlock: return exec_block(stmt);
    case StmtKind::kBreak: return Flow::kBreak;
    case StmtKind::kContinue: return Flow::kContinue;
    case StmtKind::kRefuse: fault(stmt.text->text());
  }
  return Flow::kNormal;
}

void Interp::output(const Stmt& stmt) {
  for (const ExprPtr& expr : stmt.exprs) {
    const Value value = eval(*expr);
    pos_ = expr->pos;
    runtime_.print(value, *out_);
  }
}

Interp::Flow Interp::exec_if(const Stmt& stmt) {
  for (std::size_t i = 0; i < stmt.exprs.size(); ++i) {
    if (runtime_.truthy(eval(*stmt.exprs[i]))) return exec(stmt.bodies[i]);
  }
  return stmt.bodies.size() > stmt.exprs.size() ? exec(stmt.bodies.back()) : Flow::kNormal;
}

Interp::Flow Interp::exec_set_block(const Stmt& stmt) {
  StrBuilder text(runtime_.budget());
  Value value;
  {
    const Inside inside(*this, inner_scope(), &text);
    const Flow flow = exec(stmt.bodies[0]);
    if (flow != Flow::kNormal) return flow;
    value = Value::string(text.finish());
    if (stmt.exprs[0] != nullptr) {
      std::swap(block_text_, value);
      const Value filtered = eval(*stmt.exprs[0]);
      block_text_ = std::move(value);
      value = filtered;
    }
  }
  assign(stmt.target, value, *scope_);
  return Flow::kNormal;
}

Interp::Flow Interp::exec_filter_block(const Stmt& stmt) {
  StrBuilder text(runtime_.budget());
  Value value;
  {
    const Inside inside(*this, inner_scope(), &text);
    const Flow flow = exec(stmt.bodies[0]);
    if (flow != Flow::kNormal) return flow;
    Value before = std::exchange(block_text_, Value::string(text.finish()));
    value = eval(*stmt.exprs[0]);
    block_text_ = std::move(before);
  }
  runtime_.print(value, *out_);
  return Flow::kNormal;
}

Interp::Flow Interp::exec_with(const Stmt& stmt) {
  ScopePtr inner = inner_scope();
  for (std::size_t i = 0; i < stmt.targets.size(); ++i) {
    assign(stmt.targets[i], eval(*stmt.exprs[i]), *inner);
  }
  const Inside inside(*this, std::move(inner));
  return exec(stmt.bodies[0]);
}

// A block sees the template's own variables, and those around it only where it says `scoped`.
Interp::Flow Interp::exec_block(const Stmt& stmt) {
  const ScopePtr& around = stmt.flag ? scope_ : root_;
  const Inside inside(*this, std::make_shared<Scope>(runtime_.heap(), around));
  return exec(stmt.bodies[0]);
}

void Interp::exec_call(const Stmt& stmt) {
  const Value caller = runtime_.make<Macro>(*this, *stmt.macro, scope_);
  const Value value = eval_call(*stmt.exprs[0], caller);
  runtime_.print(value, *out_);
}

void Interp::assign(const Target& target, const Value& value, Scope& scope) {
  pos_ = target.pos;
  switch (target.kind) {
    case Target::Kind::kName: scope.set(target.name, value); break;
    case Target::Kind::kTuple: unpack(target, value, scope); break;
    case Target::Kind::kAttribute: {
      const Value* holder = scope_->find(target.name);
      auto* names = holder != nullptr ? holder->as<Namespace>() : nullptr;
      if (names == nullptr) fault("cannot assign attribute on non-namespace object");
      names->attributes().set(Value::string(target.attribute), value);
      break;
    }
  }
}

void Interp::unpack(const Target& target, const Value& value, Scope& scope) {
  if (!runtime_.iterable(value)) {
    fault("cannot unpack non-iterable " + std::string(type_name(value)) + " object");
  }
  const std::size_t wanted = target.parts.size();
  std::vector<Value> items;
  const auto source = runtime_.iterate(value);
  for (Value item; items.size() <= wanted && source->next(runtime_, item);) items.push_back(item);
  if (items.size() > wanted) {
    fault("too many values to unpack (expected " + std::to_string(wanted) + ")");
  }
  if (items.size() < wanted) {
    fault("not enough values to unpack (expected " + std::to_string(wanted) + ", got " +
          std::to_string(items.size()) + ")");
  }
  for (std::size_t i = 0; i < wanted; ++i) assign(target.parts[i], items[i], scope);
}

}  // namespace dunlin::jinja
