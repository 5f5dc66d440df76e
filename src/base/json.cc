#include "base/json.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/quote.h"

namespace dunlin {
namespace {

using nlohmann::json;

// What can be told before the parser runs, whose memory grows with the depth and the values.
Outcome check_shape(std::string_view text, const JsonLimits& limits) {
  int depth = 0;
  std::size_t num_values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      ++num_values;
      if (++depth > limits.max_depth)
        return invalid(fmt::format("nests deeper than {} levels at byte {}", limits.max_depth, i));
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && ++num_values > limits.max_values) {
      return invalid(fmt::format("has more than {} values", limits.max_values));
    }
  }
  return {};
}

// Builds the value. The library's own builder, given a callback that could see the keys, looks
// through an object anew after each object in it.
class TreeBuilder final : public json::json_sax_t {
 public:
  json root;
  std::string error;  // why it stopped

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(json::number_integer_t value) override { return put(value); }
  bool number_unsigned(json::number_unsigned_t value) override { return put(value); }
  bool number_float(json::number_float_t value, const std::string&) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return start(json::object()); }
  bool start_array(std::size_t) override { return start(json::array()); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }

  bool key(std::string& key) override {
    const auto [slot, is_new] =
        open_.back()->get_ref<json::object_t&>().try_emplace(std::move(key));
    slot_ = &slot->second;
    if (!is_new)
      error = fmt::format("has the key {} twice in one object", quote_for_message(slot->first));
    return is_new;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const json::exception& exception) override {
    constexpr int kNumberOutOfRange = 406;
    error = exception.id == kNumberOutOfRange
                ? "holds a number that is too large"
                : fmt::format("is not valid JSON in UTF-8: it goes wrong at byte {}", position);
    return false;
  }

 private:
  bool put(json value) {
    place(std::move(value));
    return true;
  }
  bool start(json container) {
    open_.push_back(place(std::move(container)));
    return true;
  }
  bool end() {
    open_.pop_back();
    return true;
  }
  json* place(json value) {
    if (!open_.empty() && open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    json& slot = open_.empty() ? root : *slot_;
    slot = std::move(value);
    return &slot;
  }

  std::vector<json*> open_;
  json* slot_ = nullptr;  // of the key that has just been read
};

}  // namespace

Result<json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return invalid(fmt::format("has {} bytes of JSON, more than the limit of {}", text.size(),
                               limits.max_bytes));
  }
  DUNLIN_TRY(check_shape(text, limits));
  TreeBuilder builder;
  if (!json::sax_parse(text.begin(), text.end(), &builder)) return invalid(builder.error);
  return std::move(builder.root);
}

}  // namespace dunlin
