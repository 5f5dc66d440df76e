// What a model brings for text, from a GGUF file or a Hugging Face folder.
#pragma once

#include <memory>
#include <string>

#include "dunlin/status.h"
#include "sampling/params.h"
#include "text/chat_template.h"
#include "text/gguf_vocabulary.h"
#include "text/tokenizer.h"

namespace dunlin {

class GgufFile;

struct ModelText {
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;  // null: none
  std::unique_ptr<ChatTemplate> tool_template;  // for messages with tools; null: the same one
  // What the model's authors recommend (generation_config.json), where they say something.
  SamplingParams sampling;
  bool recommends_sampling = false;
};

// given_template replaces the model's own; "" keeps it. Messages name the file.
Result<ModelText> read_model_text(const GgufFile& file, const std::string& given_template);
// Of a folder: tokenizer.json; tokenizer_config.json, chat_template.jinja, generation_config.json
// and config.json where they are there.
Result<ModelText> read_model_text(const std::string& folder, const std::string& given_template);

// The folder's vocabulary, end tokens and template as GGUF's keys; the vocabulary filled up to
// `vocab_size` tokens, as many as the weights have rows. kUnimplemented where GGUF can't say it.
Result<GgufVocabulary> read_gguf_vocabulary(const std::string& folder, int vocab_size);

// The tokenizer alone. `path`: a GGUF file or a folder.
Result<std::unique_ptr<Tokenizer>> open_tokenizer(const std::string& path);

}  // namespace dunlin
