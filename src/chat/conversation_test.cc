#include "chat/conversation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/fake_session.h"

namespace dunlin::chat {
namespace {

// A token is a byte. The template: "<|bos|>" is one, then for each message its role, ": ", its
// content and "<|end|>", which is one too; the prompt ends with "assistant: ".
constexpr int kRoom = 100;

EngineConfig config() {
  EngineConfig config = FakeEngine::default_config();
  config.max_context = kRoom + 20;
  return config;
}

std::string text_of(const std::vector<TokenId>& ids) {
  std::string text;
  for (const TokenId id : ids) text += FakeTokenizer().token_bytes(id, true);
  return text;
}

class ConversationTest : public testing::Test {
 protected:
  // The prompt's text; "" after a refusal.
  std::string ask(const std::string& text) {
    auto prompt = conversation_.ask(*fake_.session, text, 20);
    if (!prompt) {
      error_ = prompt.error().message();
      return "";
    }
    num_dropped_ = prompt->num_dropped_turns;
    size_ = static_cast<int>(prompt->ids.size());
    return text_of(prompt->ids);
  }
  void answer(const std::string& text) { conversation_.answered(text, {}); }

  FakeSession fake_{say("x"), kFakeTemplate, config()};
  Conversation conversation_{""};
  std::string error_;
  int num_dropped_ = 0, size_ = 0;
};

TEST_F(ConversationTest, remembers_its_turns) {
  EXPECT_EQ(ask("hi"), "<|bos|>user: hi<|end|>assistant: ");
  answer("hello");
  EXPECT_EQ(ask("and"), "<|bos|>user: hi<|end|>assistant: hello<|end|>user: and<|end|>assistant: ");
  EXPECT_EQ(num_dropped_, 0);
}

TEST_F(ConversationTest, begins_with_the_system_message) {
  conversation_.set_system("be kind");
  EXPECT_EQ(ask("hi"), "<|bos|>system: be kind<|end|>user: hi<|end|>assistant: ");
  answer("hello");
  conversation_.set_system("");
  EXPECT_EQ(ask("x"), "<|bos|>user: hi<|end|>assistant: hello<|end|>user: x<|end|>assistant: ");
}

TEST_F(ConversationTest, forgets_a_question_that_got_no_answer) {
  ask("one");
  conversation_.forget_question();
  EXPECT_EQ(ask("two"), "<|bos|>user: two<|end|>assistant: ");
}

TEST_F(ConversationTest, forgets_all_when_reset) {
  ask("one");
  answer("1");
  conversation_.reset();
  EXPECT_EQ(conversation_.num_turns(), 0u);
  EXPECT_EQ(ask("two"), "<|bos|>user: two<|end|>assistant: ");
}

// A turn of "A" and "x" takes 21 tokens; the beginning, a question "E" and the open end take 20.
TEST_F(ConversationTest, drops_the_oldest_turns_whole_and_makes_room_for_more) {
  for (const char* question : {"A", "B", "C", "D"}) {
    EXPECT_NE(ask(question), "");
    EXPECT_EQ(num_dropped_, 0) << question;
    answer("x");
  }
  // 4 turns make 104, above 100; without the oldest two it is 62, and without one 83, above 75.
  EXPECT_EQ(ask("E"),
            "<|bos|>user: C<|end|>assistant: x<|end|>user: D<|end|>assistant: x<|end|>"
            "user: E<|end|>assistant: ");
  EXPECT_EQ(num_dropped_, 2);
  EXPECT_LE(size_, kRoom * 3 / 4);
  answer("x");
  EXPECT_EQ(ask("F").substr(0, 14), "<|bos|>user: C");
  EXPECT_EQ(num_dropped_, 0);
}

TEST_F(ConversationTest, keeps_the_system_message_when_turns_go) {
  conversation_.set_system("kind");
  for (const char* question : {"A", "B", "C", "D", "E"}) {
    ask(question);
    answer("x");
  }
  EXPECT_TRUE(ask("F").starts_with("<|bos|>system: kind<|end|>user: "));
}

TEST_F(ConversationTest, lets_a_long_message_have_the_whole_room) {
  ask("A");
  answer("x");
  const std::string text(kRoom - 19, 'q');  // with the 19 of the template
  EXPECT_EQ(ask(text), "<|bos|>user: " + text + "<|end|>assistant: ");
  EXPECT_EQ(num_dropped_, 1);
  EXPECT_EQ(size_, kRoom);
}

TEST_F(ConversationTest, refuses_a_message_longer_than_the_context_and_goes_on) {
  ask("A");
  answer("x");
  EXPECT_EQ(ask(std::string(kRoom, 'q')), "");
  EXPECT_NE(error_.find("119 tokens"), std::string::npos) << error_;
  EXPECT_NE(error_.find("context of 120 leaves 100"), std::string::npos) << error_;
  EXPECT_NE(error_.find("--context"), std::string::npos) << error_;
  EXPECT_EQ(ask("B"), "<|bos|>user: A<|end|>assistant: x<|end|>user: B<|end|>assistant: ");
}

TEST_F(ConversationTest, says_what_the_template_refuses_and_goes_on) {
  FakeSession fake(say("x"),
                   "{% for m in messages %}{% if m.content == 'no' %}"
                   "{{ raise_exception('never say no') }}{% endif %}{{ m.content }}"
                   "{% endfor %}");
  const auto refused = conversation_.ask(*fake.session, "no", 1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message().find("never say no"), std::string::npos);
  EXPECT_EQ(conversation_.num_turns(), 0u);
}

TEST_F(ConversationTest, sends_the_tokens_that_the_model_chose) {
  ask("A");
  conversation_.answered("xy", {200, 201});  // two tokens that are no text of their own
  const auto prompt = conversation_.ask(*fake_.session, "B", 20);
  ASSERT_TRUE(prompt.has_value());
  const std::vector<TokenId> begin = {200, 201, FakeTokenizer::kEnd};
  const auto found =
      std::search(prompt->ids.begin(), prompt->ids.end(), begin.begin(), begin.end());
  EXPECT_EQ(found - prompt->ids.begin(), 1 + 7 + 1 + 11);
}

TEST_F(ConversationTest, continues_the_text_of_a_base_model) {
  FakeSession fake(say("x"), nullptr);
  const auto first = conversation_.ask(*fake.session, "Once", 1);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(text_of(first->ids), "<|bos|>Once");
  answer(" upon a time");
  const auto second = conversation_.ask(*fake.session, "there", 1);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(text_of(second->ids), "<|bos|>Once upon a time\nthere");
}

TEST_F(ConversationTest, is_written_as_messages) {
  conversation_.set_system("s");
  ask("q\n\"1\"");
  answer("a");
  ask("q2");
  EXPECT_EQ(nlohmann::json::parse(conversation_.to_json()),
            nlohmann::json::parse(R"([{"role": "system", "content": "s"},
                                      {"role": "user", "content": "q\n\"1\""},
                                      {"role": "assistant", "content": "a"},
                                      {"role": "user", "content": "q2"}])"));
}

}  // namespace
}  // namespace dunlin::chat
