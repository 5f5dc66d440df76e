#include "chat/chat_commands.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "chat/answer.h"
#include "support/fake_session.h"
#include "support/scratch_folder.h"

namespace dunlin::chat {
namespace {

class ChatCommandsTest : public testing::Test {
 protected:
  // What the command says, or "error: " and why not.
  std::string run(const std::string& line) {
    auto said = run_chat_command(line, state_);
    return said ? *said : "error: " + said.error().message();
  }
  void turn(const std::string& question, const std::string& answer) {
    ASSERT_TRUE(state_.conversation.ask(*fake_.session, question, 1).has_value());
    state_.conversation.answered(answer, {});
  }
  static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  FakeSession fake_{say("x")};
  ScratchFolder folder_;
  ChatState state_{Conversation("")};
};

TEST_F(ChatCommandsTest, help_names_every_command) {
  for (const char* command : {"/reset", "/system", "/save", "/verbose", "/bye", "Ctrl-C", "\"\"\""})
    EXPECT_NE(run("/help").find(command), std::string::npos) << command;
}

TEST_F(ChatCommandsTest, an_unknown_one_is_named) {
  EXPECT_EQ(run("/nope x"),
            "error: there is no '/nope'; /help lists the commands, and a space first sends it as a "
            "message");
  EXPECT_NE(run("/\x1b[31m").find("'/\\x1b[31m'"), std::string::npos);
}

TEST_F(ChatCommandsTest, reset_forgets_the_turns) {
  turn("q", "a");
  EXPECT_EQ(run("/reset"), "a new conversation");
  EXPECT_EQ(state_.conversation.num_turns(), 0u);
}

TEST_F(ChatCommandsTest, system_sets_shows_and_takes_back) {
  EXPECT_EQ(run("/system"), "the system message is the template's own");
  EXPECT_EQ(run("/system  You are\n a pirate. "), "the system message is set");
  EXPECT_EQ(run("/system"), "You are\n a pirate.");
  turn("q", "a");
  EXPECT_EQ(run("/system Be brief."),
            "the system message is set; /reset starts a new conversation");
  EXPECT_EQ(state_.conversation.num_turns(), 1u);
  run("/system default");
  EXPECT_EQ(state_.conversation.system(), "");
}

TEST_F(ChatCommandsTest, a_base_model_has_no_system_message) {
  state_.has_roles = false;
  EXPECT_TRUE(run("/system x").starts_with("error: a base model"));
  EXPECT_EQ(state_.conversation.system(), "");
}

TEST_F(ChatCommandsTest, save_writes_the_conversation) {
  turn("q", "a");
  const std::string path = folder_.path() + "/a name.json";
  EXPECT_EQ(run("/save " + path), "saved in " + path);
  EXPECT_EQ(content(path), state_.conversation.to_json());
}

TEST_F(ChatCommandsTest, save_never_replaces_a_file) {
  const std::string path = folder_.path() + "/precious";
  std::ofstream(path) << "precious";
  EXPECT_NE(run("/save " + path).find("exists already"), std::string::npos);
  EXPECT_EQ(content(path), "precious");
  std::filesystem::create_symlink(folder_.path() + "/target", folder_.path() + "/link");
  EXPECT_NE(run("/save " + folder_.path() + "/link").find("exists already"), std::string::npos);
}

TEST_F(ChatCommandsTest, save_says_what_is_wrong) {
  EXPECT_EQ(run("/save"), "error: /save needs a file name");
  EXPECT_NE(run("/save /no/such/folder/x").find("No such file or directory"), std::string::npos);
}

TEST_F(ChatCommandsTest, verbose_is_a_switch) {
  run("/verbose");
  EXPECT_TRUE(state_.verbose);
  run("/verbose");
  EXPECT_FALSE(state_.verbose);
}

TEST_F(ChatCommandsTest, bye_leaves) {
  EXPECT_EQ(run("/bye"), "");
  EXPECT_TRUE(state_.leaving);
}

TEST(DescribeStats, has_times_rates_and_counts) {
  RequestStats stats;
  stats.num_prompt_tokens = 36;
  stats.num_cached_tokens = 32;
  stats.num_output_tokens = 21;
  stats.first_token_time_s = 0.1056;
  stats.total_time_s = 0.6056;
  EXPECT_EQ(describe_stats(stats),
            "first token 106 ms, 40.0 tokens/s; prompt 36 tokens, 32 cached; answer 21");
  stats.num_output_tokens = 0;
  EXPECT_NE(describe_stats(stats).find("0.0 tokens/s"), std::string::npos);
}

}  // namespace
}  // namespace dunlin::chat
