#include "chat/answer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include "terminal/printable.h"

namespace dunlin::chat {
namespace {

// Gives errno, or 0.
int write_out(std::string_view text) {
  if (text.empty()) return 0;
  const bool whole =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return whole ? 0 : errno;
}

}  // namespace

Result<Answer> stream_answer(Session& session, std::vector<TokenId> prompt,
                             GenerationOptions options, const std::function<bool()>& interrupted) {
  const int room = session.context_length() - static_cast<int>(prompt.size());
  if (options.sampling.max_tokens <= 0 || options.sampling.max_tokens > room)
    options.sampling.max_tokens = std::max(room, 1);
  DUNLIN_ASSIGN(generation, session.generate(std::move(prompt), options));
  const bool on_terminal = isatty(STDOUT_FILENO) != 0;
  Answer answer;
  bool cancelled = false;
  while (!generation->finished()) {
    if (!cancelled && (answer.write_error != 0 || interrupted())) {
      generation->cancel();
      cancelled = true;
    }
    const auto delta = generation->wait(std::chrono::milliseconds(50));
    if (!delta) continue;
    if (delta->error) return tl::unexpected(*delta->error);
    if (answer.write_error == 0)
      answer.write_error = write_out(on_terminal ? terminal::printable(delta->text) : delta->text);
    answer.text += delta->text;
    if (delta->token && delta->finish != FinishReason::kStop)
      answer.tokens.push_back(*delta->token);
    if (delta->stop_string) answer.tokens.clear();
    if (delta->finish != FinishReason::kNone) {
      answer.finish = delta->finish;
      answer.stats = delta->stats;
    }
  }
  if (answer.write_error == 0 && !answer.text.ends_with('\n')) answer.write_error = write_out("\n");
  return answer;
}

std::string describe_stats(const RequestStats& stats) {
  const double decode_s = stats.total_time_s - stats.first_token_time_s;
  const double rate =
      stats.num_output_tokens > 1 && decode_s > 0 ? (stats.num_output_tokens - 1) / decode_s : 0.0;
  return fmt::format(
      "first token {:.0f} ms, {:.1f} tokens/s; prompt {} tokens, {} cached; answer {}",
      stats.first_token_time_s * 1e3, rate, stats.num_prompt_tokens, stats.num_cached_tokens,
      stats.num_output_tokens);
}

}  // namespace dunlin::chat
