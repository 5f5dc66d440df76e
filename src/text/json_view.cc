#include "text/json_view.h"

namespace dunlin::hf {

const nlohmann::json* JsonView::find(std::string_view key) const {
  if (!value_->is_object()) return nullptr;
  const auto found = value_->find(key);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

Result<JsonView> JsonView::required(std::string_view key) const {
  if (!value_->is_object()) return error("must be an object");
  const nlohmann::json* found = find(key);
  if (found == nullptr) return invalid(fmt::format("{}.{}: is missing", path_, key));
  return child(key, *found);
}

Result<JsonView> JsonView::object(std::string_view key) const {
  DUNLIN_ASSIGN(view, required(key));
  if (!view.value().is_object()) return view.error("must be an object");
  return view;
}

Result<std::vector<JsonView>> JsonView::array(std::string_view key) const {
  DUNLIN_ASSIGN(view, required(key));
  if (!view.value().is_array()) return view.error("must be an array");
  std::vector<JsonView> out;
  for (std::size_t i = 0; i < view.value().size(); ++i) {
    out.emplace_back(view.value()[i], fmt::format("{}[{}]", view.path(), i));
    if (!out.back().value().is_object()) return out.back().error("must be an object");
  }
  return out;
}

Result<std::string> JsonView::string(std::string_view key) const {
  DUNLIN_ASSIGN(view, required(key));
  if (!view.value().is_string()) return view.error("must be a string");
  return view.value().get<std::string>();
}

Result<std::string> JsonView::string_or(std::string_view key, std::string_view otherwise) const {
  if (!has(key)) return std::string(otherwise);
  return string(key);
}

Result<bool> JsonView::boolean_or(std::string_view key, bool otherwise) const {
  if (!has(key)) return otherwise;
  DUNLIN_ASSIGN(view, required(key));
  if (!view.value().is_boolean()) return view.error("must be true or false");
  return view.value().get<bool>();
}

Result<int> JsonView::integer(std::string_view key, int min, int max) const {
  DUNLIN_ASSIGN(view, required(key));
  const nlohmann::json& number = view.value();
  // An unsigned number too large for 64 signed bits is above every maximum, too.
  const bool fits = number.is_number_integer() &&
                    (!number.is_number_unsigned() ||
                     number.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT32_MAX));
  if (!fits || number.get<std::int64_t>() < min || number.get<std::int64_t>() > max) {
    return view.error(fmt::format("must be an integer from {} to {}", min, max));
  }
  return number.get<int>();
}

Result<int> JsonView::integer_or(std::string_view key, int otherwise, int min, int max) const {
  if (!has(key)) return otherwise;
  return integer(key, min, max);
}

}  // namespace dunlin::hf
