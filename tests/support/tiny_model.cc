#include "support/tiny_model.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/utf8.h"
#include "support/tiny_weights.h"

namespace dunlin {
namespace {

constexpr const char* kMerges[] = {
    "t h",          "th e", "i n", "a n", "in g", "e r", "an d", "\xC4\xA0 the",
    "\xC4\xA0 and", "o u",  "l l", "r e", "h e",  "o n", "s t",  "\xC4\xA0 a",
};
static_assert(256 + std::size(kMerges) == kTinyEndOfText);

// GGUF's normal, control and unused.
constexpr std::int32_t kNormal = 1, kControl = 3, kUnused = 5;

constexpr const char* kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}";

// The character that stands for a byte in byte-level BPE: itself where it is a printable Latin-1
// character other than the soft hyphen, else the next free code point from 256 on.
std::string byte_token(int byte) {
  const auto prints = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b != 173); };
  char32_t code_point = static_cast<char32_t>(byte);
  if (!prints(byte)) {
    code_point = 256;
    for (int b = 0; b < byte; ++b) code_point += prints(b) ? 0 : 1;
  }
  std::string token;
  append_utf8(token, code_point);
  return token;
}

class TinyModelBuilder {
 public:
  explicit TinyModelBuilder(const TinyModelOptions& options) : o_(options) {
    gemma_ = o_.architecture == "gemma3";
    tied_ = o_.tied || gemma_;
    DUNLIN_CHECK(gemma_ || o_.architecture == "llama" || o_.architecture == "qwen2",
                 "no tiny model of this architecture");
    DUNLIN_CHECK(o_.vocab_size >= kTinyUsedTokens, "the vocabulary has no room for its tokens");
  }

  GgufWriter build() {
    write_metadata();
    write_vocabulary();
    write_weights();
    return std::move(writer_);
  }

 private:
  std::string key(std::string_view name) const { return o_.architecture + "." + std::string(name); }
  void set(std::string_view name, int value) {
    writer_.set_u32(key(name), static_cast<std::uint32_t>(value));
  }

  void write_metadata() {
    writer_.set_string("general.architecture", o_.architecture);
    writer_.set_string("general.name", fmt::format("Tiny {}", o_.architecture));
    set("block_count", o_.num_layers);
    set("context_length", o_.context_length);
    set("embedding_length", o_.hidden_size);
    set("feed_forward_length", o_.ffn_size);
    set("attention.head_count", o_.num_heads);
    set("attention.head_count_kv", o_.num_kv_heads);
    set("attention.key_length", o_.head_dim);
    set("attention.value_length", o_.head_dim);
    set("rope.dimension_count", o_.head_dim);
    set("vocab_size", o_.vocab_size);
    writer_.set_f32(key("attention.layer_norm_rms_epsilon"), 1e-6f);
    writer_.set_f32(key("rope.freq_base"), 10000.0f);
    const int window = o_.sliding_window == 0 && gemma_ ? 32 : o_.sliding_window;
    if (window > 0) set("attention.sliding_window", window);
    if (gemma_) set("attention.sliding_window_pattern", o_.sliding_window_pattern);
  }

  void write_vocabulary() {
    std::vector<std::int32_t> types(static_cast<std::size_t>(o_.vocab_size), kUnused);
    for (std::size_t i = 0; i < kTinyUsedTokens; ++i) {
      types[i] = i < kTinyEndOfText ? kNormal : kControl;
    }
    const std::vector<std::string> merges(std::begin(kMerges), std::end(kMerges));
    writer_.set_string("tokenizer.ggml.model", "gpt2");
    writer_.set_string("tokenizer.ggml.pre", "gpt-2");
    writer_.set_strings("tokenizer.ggml.tokens", tiny_vocabulary(o_.vocab_size));
    writer_.set_i32s("tokenizer.ggml.token_type", types);
    writer_.set_strings("tokenizer.ggml.merges", merges);
    writer_.set_u32("tokenizer.ggml.bos_token_id", kTinyEndOfText);
    writer_.set_u32("tokenizer.ggml.eos_token_id", kTinyImEnd);
    writer_.set_bool("tokenizer.ggml.add_bos_token", false);
    if (o_.chat_template) writer_.set_string("tokenizer.chat_template", kChatMl);
  }

  void matrix(const std::string& name, std::int64_t rows, std::int64_t cols, float stddev,
              std::function<float(std::int64_t)> row_factor = {}) {
    const std::int64_t shape[] = {rows, cols};
    writer_.add_tensor(
        name, o_.dtype, shape,
        random_tensor({name, o_.dtype, rows, cols, 0.0f, stddev, std::move(row_factor)}, o_.seed));
  }

  void vector(const std::string& name, std::int64_t size, float mean, float stddev) {
    const std::int64_t shape[] = {size};
    writer_.add_tensor(name, DType::kF32, shape,
                       random_tensor({name, DType::kF32, 1, size, mean, stddev, {}}, o_.seed));
  }

  void write_weights() {
    // Logits of deviation 3: a clear best token, and a chance for others.
    const float head_stddev = 3.0f / std::sqrt(static_cast<float>(o_.hidden_size));
    const auto factor = [can_end = o_.can_end](std::int64_t row) {
      return can_end || row < kTinyEndOfText ? 1.0f : 0.01f;
    };
    if (tied_) {
      matrix("token_embd.weight", o_.vocab_size, o_.hidden_size, head_stddev, factor);
    } else {
      matrix("token_embd.weight", o_.vocab_size, o_.hidden_size, 1.0f);
    }
    for (int i = 0; i < o_.num_layers; ++i) write_layer(fmt::format("blk.{}.", i));
    // With a tied head each token would vote for itself, and the text be one token repeated; signs
    // at random take that vote away.
    vector("output_norm.weight", o_.hidden_size, tied_ ? 0.0f : 1.0f, tied_ ? 1.0f : 0.1f);
    if (!tied_) matrix("output.weight", o_.vocab_size, o_.hidden_size, head_stddev, factor);
  }

  void write_layer(const std::string& prefix) {
    const std::int64_t hidden = o_.hidden_size, ffn = o_.ffn_size;
    const std::int64_t q_size = std::int64_t{o_.num_heads} * o_.head_dim;
    const std::int64_t kv_size = std::int64_t{o_.num_kv_heads} * o_.head_dim;
    const auto fan_in = [](std::int64_t in) { return 1.0f / std::sqrt(static_cast<float>(in)); };
    // Layers loud enough to outvote the embedding that they add to.
    constexpr float kGain = 2.0f;
    vector(prefix + "attn_norm.weight", hidden, 1.0f, 0.1f);
    // Sharper than 1: attention that prefers some positions.
    matrix(prefix + "attn_q.weight", q_size, hidden, 3 * fan_in(hidden));
    matrix(prefix + "attn_k.weight", kv_size, hidden, fan_in(hidden));
    matrix(prefix + "attn_v.weight", kv_size, hidden, fan_in(hidden));
    if (o_.architecture == "qwen2") {
      vector(prefix + "attn_q.bias", q_size, 0.0f, 0.2f);
      vector(prefix + "attn_k.bias", kv_size, 0.0f, 0.2f);
      vector(prefix + "attn_v.bias", kv_size, 0.0f, 0.2f);
    }
    matrix(prefix + "attn_output.weight", hidden, q_size, kGain * fan_in(q_size));
    vector(prefix + "ffn_norm.weight", hidden, 1.0f, 0.1f);
    matrix(prefix + "ffn_gate.weight", ffn, hidden, fan_in(hidden));
    matrix(prefix + "ffn_up.weight", ffn, hidden, fan_in(hidden));
    matrix(prefix + "ffn_down.weight", hidden, ffn, kGain * fan_in(ffn));
    if (!gemma_) return;
    vector(prefix + "attn_q_norm.weight", o_.head_dim, 1.5f, 0.1f);
    vector(prefix + "attn_k_norm.weight", o_.head_dim, 1.0f, 0.1f);
    vector(prefix + "post_attention_norm.weight", hidden, 1.5f, 0.1f);
    vector(prefix + "post_ffw_norm.weight", hidden, 3.0f, 0.1f);
  }

  TinyModelOptions o_;
  bool gemma_ = false;
  bool tied_ = false;
  GgufWriter writer_;
};

}  // namespace

std::vector<std::string> tiny_vocabulary(int vocab_size) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(byte_token(byte));
  for (const std::string_view merge : kMerges) {
    const std::size_t space = merge.find(' ');
    tokens.push_back(std::string(merge.substr(0, space)) + std::string(merge.substr(space + 1)));
  }
  tokens.insert(tokens.end(), {"<|endoftext|>", "<|im_start|>", "<|im_end|>"});
  for (int i = static_cast<int>(tokens.size()); i < vocab_size; ++i) {
    tokens.push_back(fmt::format("<|unused_{}|>", i));
  }
  return tokens;
}

GgufWriter tiny_model_writer(const TinyModelOptions& options) {
  return TinyModelBuilder(options).build();
}

TinyModelFile::TinyModelFile(const TinyModelOptions& options)
    : TinyModelFile(tiny_model_writer(options)) {}

TinyModelFile::TinyModelFile(const GgufWriter& writer) {
  path_ = folder_.path() + "/tiny.gguf";
  DUNLIN_CHECK(writer.write(path_).has_value(), "the tiny model can't be written");
}

}  // namespace dunlin
