// The engine's own promises: positions of errors, provenance, budgets. What templates mean is
// compared with python3-jinja2 in tests/e2e/jinja_test.py.
#include "text/jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

namespace dunlin::jinja {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

bool is_input(std::string_view name) { return name == "req"; }

// The steps bound a render here, whatever a sanitizer makes of their time.
Limits no_hurry() {
  Limits limits;
  limits.time = std::chrono::minutes(5);
  return limits;
}

Result<Rendered> render(std::string_view source, const Json& vars = Json::object(),
                        const Limits& limits = no_hurry()) {
  DUNLIN_ASSIGN(parsed, Template::parse(source));
  return parsed.render(vars, 0, is_input, limits);
}

std::string text(std::string_view source, const Json& vars = Json::object()) {
  const auto rendered = render(source, vars);
  return rendered ? rendered->text : "ERROR " + rendered.error().message();
}

std::string error(std::string_view source, const Json& vars = Json::object()) {
  const auto rendered = render(source, vars);
  return rendered ? "no error: " + rendered->text : rendered.error().message();
}

// The text with its input ranges in brackets.
std::string marked(std::string_view source, const Json& vars) {
  const auto rendered = render(source, vars);
  if (!rendered) return "ERROR " + rendered.error().message();
  std::string out;
  std::size_t at = 0;
  for (const Span& span : rendered->input) {
    out += rendered->text.substr(at, span.begin - at) + "[" +
           rendered->text.substr(span.begin, span.end - span.begin) + "]";
    at = span.end;
  }
  return out + rendered->text.substr(at);
}

TEST(Template, says_line_and_column_of_what_it_cannot_parse) {
  EXPECT_THAT(error("a\nbé {{ 1 + }}"), StartsWith("line 2, column 11: unexpected 'end of print"));
  EXPECT_THAT(error("{% if x %}\n\nabc"),
              StartsWith("line 3, column 4: unexpected end of template"));
  EXPECT_THAT(error("{{ 'abc }}"), StartsWith("line 1, column 4: the text is not closed"));
  EXPECT_THAT(error("x\n  {% nope %}"), StartsWith("line 2, column 6: unknown tag 'nope'"));
  EXPECT_THAT(error("{{ 1 | nope }}"), StartsWith("line 1, column 8: No filter named 'nope'."));
  EXPECT_THAT(error("{{ \xff }}"), HasSubstr("not valid UTF-8"));
}

TEST(Template, says_line_and_column_of_what_fails_while_rendering) {
  EXPECT_EQ(error("a\n{{ x.y.z }}", {{"x", Json::object()}}),
            "line 2, column 7: 'dict object' has no attribute 'y'");
  EXPECT_EQ(error("{{ nope() }}"), "line 1, column 8: 'nope' is undefined");
  EXPECT_EQ(error("{% for a in [1, 'x'] %}\n{{ 1 + a }}\n{% endfor %}"),
            "line 2, column 6: unsupported operand type(s) for +: 'int' and 'str'");
  EXPECT_EQ(error("{% macro m() %}\n{{ [] | tojson | abs }}{% endmacro %}{{ m() }}"),
            "line 2, column 18: bad operand type for abs(): 'str'");
}

TEST(Template, raises_with_the_words_of_the_template_and_nothing_else) {
  const auto rendered = render("\n{{ raise_exception('roles must alternate') }}");
  ASSERT_FALSE(rendered);
  EXPECT_EQ(rendered.error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(rendered.error().message(), "roles must alternate");
}

TEST(Template, keeps_the_provenance_of_text) {
  const Json vars{{"req", {{"s", "ab"}, {"l", {"x", "y"}}, {"d", {{"k", "v"}}}}}, {"t", "T"}};
  EXPECT_EQ(marked("<{{ req.s }}>", vars), "<[ab]>");
  EXPECT_EQ(marked("{{ t }}{{ '<' + req.s + '>' }}", vars), "T<[ab]>");
  EXPECT_EQ(marked("{{ ('<' ~ req.s ~ '>')[1:3] }}", vars), "[ab]");
  EXPECT_EQ(marked("{{ ('<' ~ req.s ~ '>')[::-1] }}", vars), ">[ba]<");
  EXPECT_EQ(marked("{{ req.s * 2 ~ 'c' * 2 }}", vars), "[abab]cc");
  EXPECT_EQ(marked("{{ ('-' ~ req.s) | upper }}", vars), "-[AB]");
  EXPECT_EQ(marked("{{ ('x' ~ req.s) | replace('a', 'c') }}", vars), "xc[b]");
  EXPECT_EQ(marked("{{ 'xyx' | replace('y', req.s) }}", vars), "x[ab]x");
  EXPECT_EQ(marked("{{ req.l | join(', ') }}", vars), "[x], [y]");
  EXPECT_EQ(marked("{{ ['1', '2'] | join(req.s) }}", vars), "1[ab]2");
  EXPECT_EQ(marked("{{ req.d | tojson }}", vars), R"({"[k]": "[v]"})");
  EXPECT_EQ(marked("{{ req.d }}", vars), "{'[k]': '[v]'}");
  EXPECT_EQ(marked("{{ req.l }}", vars), "['[x]', '[y]']");
  EXPECT_EQ(marked("{{ '%s=%5s' % (req.s, req.s) }}", vars), "[ab]=   [ab]");
  EXPECT_EQ(marked("{{ '{}:{:>4}'.format(req.s, req.s) }}", vars), "[ab]:  [ab]");
  EXPECT_EQ(marked("{{ ('p ' ~ req.s ~ ' q').split() }}", vars), "['p', '[ab]', 'q']");
  EXPECT_EQ(marked("{{ (' ' ~ req.s ~ ' ').strip() | indent(2, true) }}", vars), "  [ab]");
  EXPECT_EQ(marked("{% for c in req.s %}{{ c }}-{% endfor %}", vars), "[a]-[b]-");
  EXPECT_EQ(marked("{% for k, v in req.d.items() %}{{ k }}={{ v }}{% endfor %}", vars), "[k]=[v]");
  EXPECT_EQ(marked("{% set x %}a{{ req.s }}b{% endset %}{{ x | title }}", vars), "A[ab]b");
  EXPECT_EQ(marked("{% macro m(v) %}<{{ v }}>{% endmacro %}{{ m(req.s) | trim('<') }}", vars),
            "[ab]>");
  EXPECT_EQ(marked("{% filter upper %}x{{ req.s }}{% endfilter %}", vars), "X[AB]");
  EXPECT_EQ(marked("{{ dict(**req.d) }}", vars), "{'[k]': '[v]'}");
  EXPECT_EQ(marked("{{ strftime_now(req.s) }}", vars), "[ab]");
  EXPECT_EQ(marked("{{ req.s | e ~ req.s | urlencode }}", vars), "[abab]");
  EXPECT_EQ(marked("{{ req.s | length }}{{ req.s == 'ab' }}", vars), "2True");
}

TEST(Template, marks_what_an_escape_makes_of_input_as_input) {
  const Json vars{{"req", "a\"\n<"}};
  EXPECT_EQ(marked("{{ req | tojson }}", vars), R"("[a\"\n<]")");
  EXPECT_EQ(marked("{{ [req] }}", vars), R"(['[a"\n<]'])");
  EXPECT_EQ(marked("{{ req | e }}", vars), "[a&#34;\n&lt;]");
  EXPECT_EQ(marked("{{ 'ß' ~ req }}", {{"req", "ß"}}), "ß[ß]");
  EXPECT_EQ(marked("{{ ('ß' ~ req) | upper }}", {{"req", "ß"}}), "SS[SS]");
}

TEST(Template, keeps_large_whole_numbers_of_the_request) {
  EXPECT_EQ(text("{{ x | tojson }}", {{"x", 18446744073709551615u}}), "18446744073709551615");
  EXPECT_EQ(text("{{ 2 ** 100 }}"), "1267650600228229401496703205376");
  EXPECT_THAT(error("{{ 2 ** 127 }}"), HasSubstr("too large"));
  EXPECT_THAT(error("{{ 170141183460469231731687303715884105727 + 1 }}"), HasSubstr("too large"));
}

TEST(Template, ends_hostile_templates_within_their_budgets) {
  Limits limits;
  limits.steps = 200'000;
  limits.memory_bytes = 8u << 20;
  limits.string_bytes = 1u << 20;
  const char* const hostile[] = {
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{% set ns = namespace(s='aaaaaaaa') %}{% for a in range(99) %}{% set ns.s = ns.s + ns.s "
      "%}{% endfor %}",
      "{{ 'a' * 99999999999 }}",
      "{{ [0] * 99999999999 }}",
      "{{ 'a' | center(9999999999) }}",
      "{{ '%99999999d' % 1 }}",
      "{{ '{:99999999}'.format(1) }}",
      "{{ 'a' | indent(9999999999, true) }}",
      "{{ 'a'.ljust(9999999999) }}",
      "{{ '\t'.expandtabs(9999999999) }}",
      "{{ [[1]] | tojson(indent=9999999999) }}",
      "{{ [1] | batch(99999999, 'x') | list }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% set x = [] %}{% set _ = x.append(x) %}{{ x }}",
      "{% set x = [] %}{% set _ = x.append(x) %}{{ x | tojson }}",
      "{% set x = [] %}{% set y = [] %}{% set _ = x.append(x) %}{% set _ = y.append(y) %}{{ x == y "
      "}}",
      "{% set x = [1] %}{% for i in x %}{% set _ = x.append(i) %}{% endfor %}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(999) %}{% set ns.x = ns.x | map('string') "
      "%}{% endfor %}{{ ns.x | list }}",
      "{% set ns = namespace(x='a') %}{% for i in range(99999) %}{% set ns.x = ns.x ~ 'b' %}{{ "
      "ns.x }}{% endfor %}",
      "{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}",
      "{{ ('a' * 500000).replace('', 'b') }}",
      "{{ ('a' * 999999).split('a') | length }}",
  };
  for (const char* source : hostile) {
    const auto rendered = render(source, Json::object(), limits);
    ASSERT_FALSE(rendered) << source;
    EXPECT_EQ(rendered.error().code(), StatusCode::kResourceExhausted)
        << source << ": " << rendered.error().message();
  }
}

TEST(Template, frees_deep_and_cyclic_values_without_recursion) {
  EXPECT_EQ(text("{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}"
                 "{% endfor %}{{ ns.x | length }}"),
            "1");
  EXPECT_EQ(text("{% set x = [] %}{% set d = {'x': x} %}{% set _ = x.append(d) %}{{ x | length }}"),
            "1");
}

TEST(Template, refuses_deep_nesting_instead_of_overflowing) {
  const auto repeated = [](std::string_view part, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += part;
    return out;
  };
  for (const std::string& source :
       {"{{ " + repeated("(", 50'000) + "1" + repeated(")", 50'000) + " }}",
        "{{ " + repeated("[", 50'000) + repeated("]", 50'000) + " }}",
        "{{ " + repeated("not ", 50'000) + "1 }}", "{{ " + repeated("-", 50'000) + "1 }}",
        "{{ 1" + repeated(" + 1", 50'000) + " }}", "{{ a" + repeated(".b", 50'000) + " }}",
        "{{ 1" + repeated(" | abs", 50'000) + " }}", "{{ a" + repeated("()", 50'000) + " }}",
        "{{ 1" + repeated(" if 1 else 1", 50'000) + " }}", repeated("{% if 1 %}", 50'000),
        repeated("{% for a in b %}", 50'000), "{% set " + repeated("(", 50'000) + "a = 1 %}"}) {
    EXPECT_FALSE(Template::parse(source)) << source.substr(0, 30);
  }
  EXPECT_EQ(text("{{ " + repeated("(", 60) + "1" + repeated(")", 60) + " }}"), "1");
  EXPECT_EQ(text("{{ 0" + repeated(" + 1", 700) + " }}"), "700");
  Json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = Json::array({deep});
  EXPECT_THAT(error("{{ req }}", {{"req", deep}}), HasSubstr("nested too deeply"));
}

TEST(Template, refuses_text_of_a_request_that_is_not_utf8) {
  EXPECT_THAT(error("{{ req }}", {{"req", "a\xff"}}), HasSubstr("not valid UTF-8"));
}

TEST(Template, renders_on_several_threads_at_once) {
  const auto parsed = Template::parse(
      "{% macro m(a, b='x') %}{{ a ~ b }}{% endmacro %}{% for i in req %}{{ m(i) }}{% endfor %}");
  ASSERT_TRUE(parsed);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto rendered = parsed->render({{"req", {1, 2, 3}}}, 0, is_input);
        if (rendered && rendered->text == "1x2x3x") ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 800);
}

}  // namespace
}  // namespace dunlin::jinja
