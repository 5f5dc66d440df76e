// The functions every template finds: range, dict, namespace, cycler, joiner, raise_exception,
// strftime_now.
#include <algorithm>
#include <cctype>
#include <ctime>

#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/containers.h"

namespace dunlin::jinja {
namespace {

class Cycler : public Object {
 public:
  Cycler(Heap& heap, std::vector<Value> items) : Object(heap), items_(std::move(items)) {}
  ~Cycler() override { bury_all(); }
  std::string_view type_name() const override { return "Cycler"; }
  void release(std::vector<Value>& out) override {
    std::move(items_.begin(), items_.end(), std::back_inserter(out));
    items_.clear();
  }
  Value attribute(Runtime& runtime, const Value& self, std::string_view name) override;
  Value next() {
    const std::size_t at = at_;
    at_ = (at_ + 1) % items_.size();
    return items_[at];
  }
  void reset() { at_ = 0; }

 private:
  std::vector<Value> items_;
  std::size_t at_ = 0;
};

Value cycler_next(Runtime&, Args& args) { return args.pos[0].as<Cycler>()->next(); }
Value cycler_reset(Runtime&, Args& args) {
  args.pos[0].as<Cycler>()->reset();
  return Value::none();
}
constexpr Builtin kCyclerNext{"next", "self", 1, cycler_next};
constexpr Builtin kCyclerReset{"reset", "self", 1, cycler_reset};

Value Cycler::attribute(Runtime& runtime, const Value& self, std::string_view name) {
  if (name == "next") return runtime.make<Function>(kCyclerNext, self);
  if (name == "reset") return runtime.make<Function>(kCyclerReset, self);
  return name == "current" ? items_[at_] : Value();
}

class Joiner : public Object {
 public:
  Joiner(Heap& heap, Value separator) : Object(heap), separator_(std::move(separator)) {}
  ~Joiner() override { bury_all(); }
  std::string_view type_name() const override { return "Joiner"; }
  void release(std::vector<Value>& out) override { out.push_back(std::move(separator_)); }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, Args& args) override {
    if (!args.pos.empty() || !args.named.empty()) fault("a joiner takes no arguments");
    if (used_) return separator_;
    used_ = true;
    return runtime.str("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

Value range(Runtime& runtime, Args& args) {
  const Int a = to_index(args.pos[0]);
  const bool one = !args.has(1);
  const Int start = one ? 0 : a;
  const Int stop = one ? a : to_index(args.pos[1]);
  const Int step = args.has(2) ? to_index(args.pos[2]) : 1;
  if (step == 0) fault("range() arg 3 must not be zero");
  constexpr Int kFar = Int{1} << 62;
  for (const Int end : {start, stop, step}) {
    if (end > kFar || end < -kFar) fault("range() argument is too large");
  }
  Value made = runtime.make<Range>(start, stop, step);
  const std::size_t most = runtime.budget().limits().range_items;
  if (made.as<Range>()->length() > most) {
    fault("Range too big. The sandbox blocks ranges larger than MAX_RANGE (" +
          std::to_string(most) + ").");
  }
  return made;
}

Value dict(Runtime& runtime, Args& args) {
  auto made = runtime.dict();
  fill_dict(runtime, *made, args, 0);
  return Value::object(made);
}

Value make_namespace(Runtime& runtime, Args& args) {
  auto attributes = runtime.dict();
  fill_dict(runtime, *attributes, args, 0);
  return runtime.make<Namespace>(attributes);
}

Value cycler(Runtime& runtime, Args& args) {
  if (args.pos.empty()) fault("at least one item has to be provided");
  return runtime.make<Cycler>(std::move(args.pos));
}

Value joiner(Runtime& runtime, Args& args) {
  return runtime.make<Joiner>(args.has(0) ? args.pos[0] : runtime.str(", "));
}

Value raise_exception(Runtime& runtime, Args& args) {
  throw Fault{Fault::Kind::kRaised, runtime.to_str(args.pos[0])->text(), std::nullopt};
}

// One %-directive at a time, so that no width can ask for more than a short buffer.
void strftime_into(const Str& format, const std::tm& time, StrBuilder& out) {
  const std::string& text = format.text();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t percent = std::min(text.find('%', at), text.size() - 1);
    if (text[percent] != '%' || percent + 1 == text.size()) {
      out.append(format, at, text.size());
      return;
    }
    out.append(format, at, percent);
    std::size_t end = percent + 1;
    if (end + 1 < text.size() &&
        std::string_view("-_0^#EO").find(text[end]) != std::string_view::npos) {
      ++end;
    }
    const char letter = text[end++];
    at = end;
    if (letter == 'z' || letter == 'Z') continue;  // Python's naive datetime has no zone
    if (letter == 'f') {
      out.append("000000");
    } else if (std::isalpha(static_cast<unsigned char>(letter)) != 0 || letter == '%') {
      char buffer[128];
      const std::string directive = text.substr(percent, end - percent);
      const std::size_t size = std::strftime(buffer, sizeof buffer, directive.c_str(), &time);
      out.append_mapped(format, percent, end, std::string_view(buffer, size));
    } else {
      out.append(format, percent, end);
    }
  }
}

Value strftime_now(Runtime& runtime, Args& args) {
  if (!args.pos[0].is_string()) {
    fault("strftime() argument 1 must be str, not " + std::string(type_name(args.pos[0])));
  }
  const std::time_t now = static_cast<std::time_t>(runtime.now());
  std::tm local{};
  if (localtime_r(&now, &local) == nullptr) fault("strftime_now: the time is out of range");
  StrBuilder out(runtime.budget());
  strftime_into(args.pos[0].str(), local, out);
  return Value::string(out.finish());
}

constexpr Builtin kGlobals[] = {
    {"range", "start stop step", 1, range},
    {"dict", "*", 0, dict},
    {"namespace", "*", 0, make_namespace},
    {"cycler", "*", 0, cycler},
    {"joiner", "sep", 0, joiner},
    {"raise_exception", "message", 1, raise_exception},
    {"strftime_now", "format", 1, strftime_now},
};

}  // namespace

std::vector<std::pair<std::string_view, Value>> make_globals(Runtime& runtime) {
  std::vector<std::pair<std::string_view, Value>> globals;
  for (const Builtin& builtin : kGlobals) {
    globals.emplace_back(builtin.name, runtime.make<Function>(builtin, Value()));
  }
  return globals;
}

}  // namespace dunlin::jinja
