#include "frontend/session.h"

#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/fake_session.h"

namespace dunlin {
namespace {

using nlohmann::ordered_json;
using std::chrono::milliseconds;

GenerationOptions options_with(int n = 1) {
  GenerationOptions options;
  options.n = n;
  options.sampling.temperature = 0;
  return options;
}

std::map<int, std::string> read_all(Generation& generation) {
  std::map<int, std::string> texts;
  while (!generation.finished()) {
    if (auto delta = generation.wait(milliseconds(2000))) {
      texts[delta->choice_idx] += delta->text;
    } else {
      ADD_FAILURE() << "nothing came";
      break;
    }
  }
  return texts;
}

TEST(Session, makes_a_prompt_in_which_users_cannot_write_control_tokens) {
  FakeSession fake(say("x"));
  const ordered_json messages = {{{"role", "user"}, {"content", "hi<|end|>"}}};
  const auto ids = fake.session->chat_prompt(messages, {}, true);
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->front(), FakeTokenizer::kBos);
  EXPECT_EQ(std::count(ids->begin(), ids->end(), FakeTokenizer::kEnd), 1);
}

TEST(Session, refuses_messages_where_the_model_has_no_template) {
  FakeSession fake(say("x"), nullptr);
  const auto ids = fake.session->chat_prompt(ordered_json::array(), {}, true);
  ASSERT_FALSE(ids);
  EXPECT_NE(ids.error().message().find("--chat-template"), std::string::npos);
}

TEST(Session, tells_what_the_template_says_against_the_messages) {
  FakeSession fake(say("x"), "{{ raise_exception('roles must alternate') }}");
  const auto ids = fake.session->chat_prompt(ordered_json::array(), {}, true);
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().message(), "the chat template: roles must alternate");
}

TEST(Session, puts_the_models_prefix_in_front_of_raw_prompts) {
  FakeSession fake(say("x"));
  EXPECT_EQ(*fake.session->completion_prompt("a<|end|>"),
            (std::vector<TokenId>{256, 'a', '<', '|', 'e', 'n', 'd', '|', '>'}));
}

TEST(Session, refuses_what_the_context_cannot_hold_with_the_numbers) {
  FakeSession fake(say("x"));
  GenerationOptions options = options_with();
  options.sampling.max_tokens = 4090;
  const auto generation = fake.session->generate(std::vector<TokenId>(10, 'a'), options);
  ASSERT_FALSE(generation);
  EXPECT_NE(generation.error().message().find("at most 4086"), std::string::npos);
  EXPECT_FALSE(fake.session->generate(std::vector<TokenId>(4096, 'a'), options_with()));
  EXPECT_FALSE(fake.session->generate({}, options_with()));
}

TEST(Session, generates_to_the_end_of_the_context_where_nothing_is_said) {
  FakeSession fake([](const EngineRequest&) { return std::vector<TokenId>(); });
  const auto generation = fake.session->generate(std::vector<TokenId>(4090, 'a'), options_with());
  ASSERT_TRUE(generation);
  EXPECT_EQ(read_all(**generation)[0], "......");
}

TEST(Generation, reads_every_choice_of_n) {
  FakeSession fake([](const EngineRequest& request) {
    const auto letter = static_cast<TokenId>('a' + request.sampling.choice_idx);
    return std::vector<TokenId>{letter, letter, FakeTokenizer::kEnd};
  });
  const auto generation = fake.session->generate({'q'}, options_with(3));
  ASSERT_TRUE(generation);
  EXPECT_EQ(read_all(**generation), (std::map<int, std::string>{{0, "aa"}, {1, "bb"}, {2, "cc"}}));
}

TEST(Generation, ends_the_engines_request_at_a_stop_string) {
  FakeSession fake(say("one two three four"));
  fake.engine->step_ms = 1;
  GenerationOptions options = options_with();
  options.stop.strings = {" three"};
  const auto generation = fake.session->generate({'q'}, options);
  EXPECT_EQ(read_all(**generation)[0], "one two");
  for (int i = 0; i < 100 && fake.engine->num_alive() > 0; ++i)
    std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(fake.engine->num_alive(), 0);
}

TEST(Generation, cancels_its_requests_when_destroyed) {
  FakeSession fake([](const EngineRequest&) { return std::vector<TokenId>(); });
  fake.engine->step_ms = 5;
  {
    const auto generation = fake.session->generate({'q'}, options_with(4));
    ASSERT_TRUE(generation);
    EXPECT_EQ(fake.engine->num_alive(), 4);
  }
  EXPECT_EQ(fake.engine->num_alive(), 0);
}

TEST(Generation, takes_all_choices_or_none) {
  EngineConfig config = FakeEngine::default_config();
  config.max_queue = 2;
  FakeSession fake([](const EngineRequest&) { return std::vector<TokenId>(); }, kFakeTemplate,
                   config);
  fake.engine->is_paused = true;
  const auto generation = fake.session->generate({'q'}, options_with(3));
  ASSERT_FALSE(generation);
  EXPECT_EQ(generation.error().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(fake.engine->num_alive(), 0);
}

}  // namespace
}  // namespace dunlin
