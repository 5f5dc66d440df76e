#include "text/pretokenizer_table.h"

#include <algorithm>

namespace dunlin {
namespace {

// The expressions are those of the models' own tokenizer.json, under the names that GGUF files give
// them.
#define DUNLIN_GPT2_WORDS "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
#define DUNLIN_GPT2 DUNLIN_GPT2_WORDS "|\\s+(?!\\S)|\\s+"
#define DUNLIN_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define DUNLIN_SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define DUNLIN_SYMBOLS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
// Words whose capitals come first (o200k and its kin); `tail` may follow each.
#define DUNLIN_CASED_WORDS(tail)                                 \
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*"  \
  "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" tail                          \
  "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+" \
  "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" tail

constexpr std::string_view kGpt2[] = {DUNLIN_GPT2};
constexpr std::string_view kDigitsThenGpt2[] = {"\\p{N}", DUNLIN_GPT2};
constexpr std::string_view kLlama3[] = {DUNLIN_CONTRACTIONS
                                        "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" DUNLIN_SYMBOLS
                                        "|" DUNLIN_SPACES};
constexpr std::string_view kQwen2[] = {
    DUNLIN_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" DUNLIN_SYMBOLS "|" DUNLIN_SPACES};
constexpr std::string_view kQwen35[] = {
    DUNLIN_CONTRACTIONS
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*"
    "|" DUNLIN_SPACES};
constexpr std::string_view kDefault[] = {"[\\p{P}\\$\\+<=>\\^~\\|]+", DUNLIN_GPT2, "\\p{N}+",
                                         "[0-9][0-9][0-9]"};
constexpr std::string_view kFalcon[] = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", DUNLIN_GPT2,
                                        "[0-9][0-9][0-9]"};
constexpr std::string_view kDeepseekLlm[] = {
    "[\\r\\n]",
    // Letters with case, as that model lists them.
    "\\s?[A-Za-z\\u00B5\\u00C0-\\u00D6\\u00D8-\\u00F6\\u00F8-\\u01BA\\u01BC-\\u01BF\\u01C4-\\u0293"
    "\\u0295-\\u02AF\\u0370-\\u0373\\u0376\\u0377\\u037B-\\u037D\\u037F\\u0386\\u0388-"
    "\\u038A\\u038C"
    "\\u038E-\\u03A1\\u03A3-\\u03F5\\u03F7-\\u0481\\u048A-\\u052F\\u0531-\\u0556\\u10A0-\\u10C5"
    "\\u13A0-\\u13F5\\u13F8-\\u13FD\\u1C90-\\u1CBA\\u1CBD-\\u1CBF\\u1D00-\\u1D2B\\u1D6B-\\u1D77"
    "\\u1D79-\\u1D9A\\u1E00-\\u1F15\\u1F18-\\u1F1D\\u1F20-\\u1F45\\u1F48-\\u1F4D\\u1F50-\\u1F57"
    "\\u1F59\\u1F5B\\u1F5D\\u1F5F-\\u1F7D\\u1F80-\\u1FB4\\u1FB6-\\u1FBC\\u1FBE\\u1FC2-\\u1FC4"
    "\\u1FC6-\\u1FCC\\u1FD0-\\u1FD3\\u1FD6-\\u1FDB\\u1FE0-\\u1FEC\\u1FF2-\\u1FF4\\u1FF6-\\u1FFC"
    "\\u2102\\u2107\\u210A-\\u2113\\u2115\\u2119-\\u211D\\u2124\\u2126\\u2128\\u212A-\\u212D"
    "\\u212F-\\u2134\\u2139\\u213C-\\u213F\\u2145-\\u2149\\u214E\\u2183\\u2184\\u2C00-\\u2C7B"
    "\\u2C7E-\\u2CE4\\u2CEB-\\u2CEE\\u2CF2\\u2CF3\\uA640-\\uA66D\\uA680-\\uA69B\\uA722-\\uA76F"
    "\\uA771-\\uA787\\uA78B-\\uA78E\\uAB70-\\uABBF\\uFB00-\\uFB06\\uFB13-\\uFB17\\uFF21-\\uFF3A"
    "\\uFF41-\\uFF5A\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}"
    "\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}]+",
    "\\s?[!-/:-~\\uFF01-\\uFF0F\\uFF1A-\\uFF5E\\u2018-\\u201F\\u3000-\\u3002]+",
    // The model's \s+$. Without the lookbehind, a run of n spaces that doesn't end the piece would
    // be tried from each of its n places.
    "(?<!\\s)\\s+$",
    "[\\u4E00-\\u9FA5\\u0800-\\u4E00\\uAC00-\\uD7FF]+",
    "\\p{N}+",
};
constexpr std::string_view kDeepseekCoder[] = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+",
                                               "[\\u4E00-\\u9FA5\\u0800-\\u4E00\\uAC00-\\uD7FF]+",
                                               "\\p{N}"};
constexpr std::string_view kDeepseekV3[] = {
    "\\p{N}{1,3}", "[\\u4E00-\\u9FA5\\u3040-\\u309F\\u30A0-\\u30FF]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" DUNLIN_SPACES};
constexpr std::string_view kBloom[] = {
    " ?[^(\\s|.,!?\\u2026\\u3002\\uFF0C\\u3001\\u0964\\u06D4\\u060C)]+"};
constexpr std::string_view kViking[] = {
    " ?[^(\\s|.,!?\\u2026\\u3002\\uFF0C\\u3001\\u0964\\u06D4\\u060C)]+", "\\p{N}"};
constexpr std::string_view kTekken[] = {
    DUNLIN_CASED_WORDS("") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" DUNLIN_SPACES};
constexpr std::string_view kGpt4o[] = {DUNLIN_CASED_WORDS(
    DUNLIN_CONTRACTIONS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" DUNLIN_SPACES};
constexpr std::string_view kBailingMoe[] = {
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*"
    "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"};
constexpr std::string_view kSeedCoder[] = {
    DUNLIN_CONTRACTIONS
    "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" DUNLIN_SPACES};

constexpr PreTokenizerSpec kSpecs[] = {
    {"default", kDefault, false, false},
    {"gpt-2", kGpt2, false, false},
    {"phi-2", kGpt2, false, false},
    {"mpt", kGpt2, false, false},
    {"olmo", kGpt2, false, false},
    {"jais", kGpt2, false, false},
    {"trillion", kGpt2, false, false},
    {"granite-docling", kGpt2, false, false},
    {"gigachat", kGpt2, false, false},
    {"mellum", kGpt2, false, false},
    {"a.x-4.0", kGpt2, false, false},
    {"starcoder", kDigitsThenGpt2, false, false},
    {"smollm", kDigitsThenGpt2, false, false},
    {"refact", kDigitsThenGpt2, false, false},
    {"command-r", kDigitsThenGpt2, false, false},
    {"codeshell", kDigitsThenGpt2, false, false},
    {"exaone", kDigitsThenGpt2, false, false},
    {"minerva-7b", kDigitsThenGpt2, false, false},
    {"llama-bpe", kLlama3, true, true},
    {"llama3", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"falcon-h1", kLlama3, true, true},
    {"pixtral", kLlama3, true, true},
    {"midm-2.0", kLlama3, true, true},
    {"lfm2", kLlama3, true, true},
    {"dbrx", kLlama3, false, false},
    {"smaug-bpe", kLlama3, false, false},
    {"chatglm-bpe", kLlama3, false, false},
    {"glm4", kLlama3, false, false},
    {"qwen2", kQwen2, false, false},
    {"deepseek-r1-qwen", kQwen2, false, false},
    {"stablelm2", kQwen2, false, false},
    {"hunyuan", kQwen2, false, false},
    {"megrez", kQwen2, false, false},
    {"grok-2", kQwen2, false, false},
    {"qwen35", kQwen35, false, false},
    {"falcon", kFalcon, false, false},
    {"deepseek-llm", kDeepseekLlm, false, false},
    {"deepseek-coder", kDeepseekCoder, false, false},
    {"deepseek-v3", kDeepseekV3, false, false},
    {"hunyuan-dense", kDeepseekV3, false, false},
    {"bloom", kBloom, false, false},
    {"poro-chat", kBloom, false, false},
    {"gpt3-finnish", kBloom, false, false},
    {"viking", kViking, false, false},
    {"tekken", kTekken, true, true},
    {"gpt-4o", kGpt4o, false, false},
    {"llama4", kGpt4o, false, false},
    {"bailingmoe", kBailingMoe, false, false},
    {"seed-coder", kSeedCoder, false, false},
};

#undef DUNLIN_GPT2_WORDS
#undef DUNLIN_GPT2
#undef DUNLIN_CONTRACTIONS
#undef DUNLIN_SPACES
#undef DUNLIN_SYMBOLS
#undef DUNLIN_CASED_WORDS

}  // namespace

const std::string_view kGpt2Expression = kGpt2[0];

std::span<const PreTokenizerSpec> pretokenizer_specs() { return kSpecs; }

const PreTokenizerSpec* find_pretokenizer_spec(std::string_view name) {
  const auto specs = pretokenizer_specs();
  const auto found = std::find_if(specs.begin(), specs.end(),
                                  [&](const PreTokenizerSpec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

}  // namespace dunlin
