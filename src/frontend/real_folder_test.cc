// SmolLM2's real weights as a Hugging Face folder, with tokenizer and template: it chats, token for
// token as the GGUF file does, both in float activations. Skipped where the model is not there.
#include <chrono>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "frontend/session.h"
#include "support/hf_folder.h"
#include "support/real_models.h"
#include "support/scratch_folder.h"

namespace dunlin {
namespace {

using Json = nlohmann::ordered_json;

std::unique_ptr<Session> open(const std::string& path) {
  SessionConfig config;
  config.model_path = path;
  config.model_name = "m";
  config.isa = "reference";
  config.engine.max_context = 256;
  config.engine.max_seqs = 1;
  auto session = Session::open(config, nullptr);
  if (session) return std::move(*session);
  ADD_FAILURE() << session.error().message();
  return nullptr;
}

struct Answer {
  std::vector<TokenId> prompt;
  std::string text;
};

Answer ask(Session& session, const char* question, int max_tokens) {
  const Json messages = Json::array({{{"role", "user"}, {"content", question}}});
  Answer answer;
  auto prompt = session.chat_prompt(messages, Json::object(), true);
  EXPECT_TRUE(prompt) << prompt.error().message();
  if (!prompt) return answer;
  answer.prompt = *prompt;
  GenerationOptions options;
  options.sampling.temperature = 0;
  options.sampling.max_tokens = max_tokens;
  auto generation = session.generate(*prompt, options);
  EXPECT_TRUE(generation) << generation.error().message();
  while (generation && !(*generation)->finished()) {
    if (const auto delta = (*generation)->wait(std::chrono::seconds(60)))
      answer.text += delta->text;
  }
  return answer;
}

TEST(RealFolder, chats_as_its_gguf_file_does) {
  DUNLIN_REAL_MODEL_OR_SKIP(file, support::kSmolLm2File);
  const ScratchFolder scratch;
  const std::string folder = scratch.path() + "/SmolLM2-135M-Instruct";
  const Outcome written = write_hf_folder(file, folder, DType::kF32);
  ASSERT_TRUE(written) << written.error().message();
  const auto gguf = open(file), hf = open(folder);
  ASSERT_TRUE(gguf && hf);
  EXPECT_TRUE(hf->has_chat_template());
  for (const char* question :
       {"What is the capital of France?", "Count: 1, 2, 3, \u00e9t\u00e9?"}) {
    const Answer wanted = ask(*gguf, question, 12), got = ask(*hf, question, 12);
    EXPECT_EQ(got.prompt, wanted.prompt);
    EXPECT_EQ(got.text, wanted.text);
    EXPECT_FALSE(got.text.empty());
  }
}

}  // namespace
}  // namespace dunlin
