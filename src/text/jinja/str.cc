#include "text/jinja/str.h"

#include <algorithm>
#include <utility>

#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

// A Str, its control block and the allocator's rounding.
constexpr std::size_t kStrOverhead = 128;

std::size_t charge_of(const std::string& text, const std::vector<Span>& input) {
  return kStrOverhead + text.size() + input.size() * sizeof(Span);
}

// First range of `s` that ends after `begin`.
std::vector<Span>::const_iterator first_after(const Str& s, std::size_t begin) {
  return std::partition_point(s.input().begin(), s.input().end(),
                              [&](const Span& span) { return span.end <= begin; });
}

}  // namespace

Str::Str(std::string text, std::vector<Span> input, bool markup, Budget* budget)
    : text_(std::move(text)),
      input_(std::move(input)),
      length_(count_code_points(text_)),
      markup_(markup),
      budget_(nullptr) {
  if (budget == nullptr) return;
  budget->grow(charge_of(text_, input_));
  budget_ = budget;
}

Str::~Str() {
  if (budget_ != nullptr) budget_->shrink(charge_of(text_, input_));
}

std::size_t Str::offset_of(std::size_t index) const {
  if (ascii() || index == 0) return index;
  if (index >= length_) return text_.size();
  std::size_t at = 0;
  for (std::size_t i = 0; i < index; ++i) at += sequence_length(text_[at]);
  return at;
}

std::size_t Str::index_of(std::size_t offset) const {
  return ascii() ? offset : count_code_points(std::string_view(text_).substr(0, offset));
}

void StrBuilder::reserve_more(std::size_t bytes) {
  const std::size_t limit = budget_->limits().string_bytes;
  if (bytes > limit || text_.size() > limit - bytes) {
    limit_fault("the template makes a text longer than its budget");
  }
  budget_->scan(bytes);
}

void StrBuilder::mark(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!input_.empty() && input_.back().end == begin) {
    input_.back().end = static_cast<std::uint32_t>(end);
  } else {
    input_.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
  }
}

void StrBuilder::put(std::string_view text, bool is_input) {
  reserve_more(text.size());
  const std::size_t begin = text_.size();
  text_.append(text);
  if (is_input) mark(begin, text_.size());
}

void StrBuilder::append(const Str& s, std::size_t begin, std::size_t end) {
  reserve_more(end - begin);
  const std::size_t base = text_.size();
  text_.append(s.text(), begin, end - begin);
  for (auto it = first_after(s, begin); it != s.input().end() && it->begin < end; ++it) {
    mark(base + std::max<std::size_t>(it->begin, begin) - begin,
         base + std::min<std::size_t>(it->end, end) - begin);
  }
}

void StrBuilder::append_mapped(const Str& s, std::size_t begin, std::size_t end,
                               std::string_view text) {
  put(text, touches_input(s, begin, end));
}

void StrBuilder::append_repeated(std::string_view template_text, std::size_t count) {
  if (template_text.empty()) return;
  if (count > budget_->limits().string_bytes) {
    limit_fault("the template makes a text longer than its budget");
  }
  reserve_more(count * template_text.size());
  for (std::size_t i = 0; i < count; ++i) text_.append(template_text);
}

StrPtr StrBuilder::finish(bool markup) {
  text_.shrink_to_fit();
  auto result = std::make_shared<const Str>(std::move(text_), std::move(input_), markup, budget_);
  text_.clear();
  input_.clear();
  return result;
}

bool touches_input(const Str& s, std::size_t begin, std::size_t end) {
  const auto it = first_after(s, begin);
  return it != s.input().end() && it->begin < end;
}

StrPtr make_str(Budget& budget, std::string text, bool is_input) {
  std::vector<Span> input;
  if (is_input && !text.empty()) input.push_back({0, static_cast<std::uint32_t>(text.size())});
  return std::make_shared<const Str>(std::move(text), std::move(input), false, &budget);
}

StrPtr substr(Budget& budget, const StrPtr& s, std::size_t begin, std::size_t end) {
  if (begin == 0 && end == s->text().size()) return s;
  StrBuilder out(budget);
  out.append(*s, begin, end);
  return out.finish(s->markup());
}

}  // namespace dunlin::jinja
