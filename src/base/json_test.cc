#include "base/json.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dunlin {
namespace {

std::string refusal(std::string_view text, const JsonLimits& limits = {}) {
  const auto value = parse_json(text, limits);
  return value ? "" : value.error().message();
}

TEST(Json, reads_values) {
  const auto value = parse_json(R"({"a": [1, 2.5, "\u00e9"], "b": {"a": null}})");
  ASSERT_TRUE(value);
  EXPECT_EQ((*value)["a"][2], "é");
  EXPECT_TRUE((*value)["b"]["a"].is_null());
}

TEST(Json, refuses_a_key_that_comes_twice_in_one_object) {
  EXPECT_EQ(refusal(R"({"a": 1, "b": {"c": 1, "c": 2}})"), "has the key 'c' twice in one object");
  EXPECT_EQ(refusal(R"([{"a": 1}, {"a": 2}])"), "");
}

TEST(Json, refuses_deep_nesting_before_it_takes_memory) {
  JsonLimits limits;
  limits.max_depth = 3;
  EXPECT_EQ(refusal("[[[1]]]", limits), "");
  EXPECT_EQ(refusal("[[[[1]]]]", limits), "nests deeper than 3 levels at byte 3");
  EXPECT_EQ(refusal(R"(["[[[[", "\"[[["])", limits), "");
  EXPECT_NE(refusal(std::string(1 << 20, '[')), "");
}

TEST(Json, refuses_what_is_no_json_and_names_the_byte) {
  EXPECT_EQ(refusal(R"({"a": })"), "is not valid JSON in UTF-8: it goes wrong at byte 7");
  EXPECT_NE(refusal("\"\xff\""), "");
  EXPECT_NE(refusal(""), "");
  EXPECT_NE(refusal("1e999"), "");
  EXPECT_NE(refusal("{} x"), "");
}

TEST(Json, refuses_more_values_than_the_limit) {
  JsonLimits limits;
  limits.max_values = 4;
  EXPECT_EQ(refusal(R"([1, {"a": 2}])", limits), "");
  EXPECT_EQ(refusal("[1, 2, 3, [4]]", limits), "has more than 4 values");
  EXPECT_EQ(refusal(R"([",,,,,,"])", limits), "");
}

// A quarter of a million objects side by side take longer than any test may if each costs a look
// at all before it.
TEST(Json, reads_many_objects_in_one) {
  std::string in_object = "{", in_array = "[";
  for (int i = 0; i < 250'000; ++i) {
    in_object += std::string(i == 0 ? "" : ",") + '"' + std::to_string(i) + R"(":{"a":1})";
    in_array += i == 0 ? R"({"a":1})" : R"(,{"a":1})";
  }
  for (const std::string& text : {in_object + "}", in_array + "]"}) {
    const auto value = parse_json(text);
    ASSERT_TRUE(value);
    EXPECT_EQ(value->size(), 250'000u);
  }
}

TEST(Json, refuses_more_bytes_than_the_limit) {
  JsonLimits limits;
  limits.max_bytes = 4;
  EXPECT_EQ(refusal("[1,2]", limits), "has 5 bytes of JSON, more than the limit of 4");
}

}  // namespace
}  // namespace dunlin
