#include "formats/gguf_parse.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "support/read_everything.h"

namespace dunlin {
namespace {

using testing::HasSubstr;

// A file under construction that remembers where each of its fields is.
class RawFile {
 public:
  struct Field {
    std::string name;
    std::size_t offset;
    std::size_t size;
  };

  template <typename T>
  void put(const std::string& name, T value) {
    fields_.push_back({name, bytes_.size(), sizeof(T)});
    append(&value, sizeof(T));
  }
  void put_string(const std::string& name, std::string_view text) {
    put(name + ".length", std::uint64_t{text.size()});
    append(text.data(), text.size());
  }
  void pad_to(std::size_t alignment) {
    while (bytes_.size() % alignment != 0) bytes_.push_back(std::byte{0});
  }
  void add_bytes(std::size_t count) { bytes_.resize(bytes_.size() + count, std::byte{7}); }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  const std::vector<Field>& fields() const { return fields_; }

  // A copy whose field `name` is `value`.
  std::vector<std::byte> with(const std::string& name, std::uint64_t value) const {
    std::vector<std::byte> copy = bytes_;
    for (const Field& field : fields_) {
      if (field.name == name) {
        std::memcpy(copy.data() + field.offset, &value, field.size);
        return copy;
      }
    }
    ADD_FAILURE() << "no field " << name;
    return copy;
  }
  // A copy with the first `from` replaced by `to`, of the same length.
  std::vector<std::byte> with_text(std::string_view from, std::string_view to) const {
    std::string text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    std::vector<std::byte> copy = bytes_;
    std::memcpy(copy.data() + at, to.data(), to.size());
    return copy;
  }

 private:
  void append(const void* data, std::size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
  }

  std::vector<std::byte> bytes_;
  std::vector<Field> fields_;
};

constexpr std::uint32_t kQ8_0Number = 8, kF32Number = 0;

void put_tensor(RawFile& file, const std::string& name, std::uint64_t ne0, std::uint64_t ne1,
                std::uint32_t type, std::uint64_t offset) {
  file.put_string(name, name);
  file.put(name + ".rank", std::uint32_t{2});
  file.put(name + ".ne0", ne0);
  file.put(name + ".ne1", ne1);
  file.put(name + ".type", type);
  file.put(name + ".offset", offset);
}

// Two tensors, and metadata of several types. No padding behind the last tensor.
RawFile sample() {
  RawFile file;
  file.put("magic", std::uint32_t{0x46554747});
  file.put("version", std::uint32_t{3});
  file.put("num_tensors", std::uint64_t{2});
  file.put("num_keys", std::uint64_t{5});
  file.put_string("alignment", "general.alignment");
  file.put("alignment.type", std::uint32_t{4});
  file.put("alignment.value", std::uint32_t{16});
  file.put_string("string", "a.string");
  file.put("string.type", std::uint32_t{8});
  file.put_string("string.value", "hello");
  file.put_string("bool", "a.bool");
  file.put("bool.type", std::uint32_t{7});
  file.put("bool.value", std::uint8_t{1});
  file.put_string("tokens", "some.tokens");
  file.put("tokens.type", std::uint32_t{9});
  file.put("tokens.element_type", std::uint32_t{8});
  file.put("tokens.count", std::uint64_t{2});
  file.put_string("tokens.0", "ab");
  file.put_string("tokens.1", "");
  file.put_string("scores", "some.scores");
  file.put("scores.type", std::uint32_t{9});
  file.put("scores.element_type", std::uint32_t{6});
  file.put("scores.count", std::uint64_t{2});
  file.put("scores.0", 0.5f);
  file.put("scores.1", -0.5f);
  put_tensor(file, "weight.q", 32, 2, kQ8_0Number, 0);
  put_tensor(file, "weight.f", 4, 2, kF32Number, 80);
  file.pad_to(16);
  file.add_bytes(80 + 32);
  return file;
}

Result<GgufContents> parse(const std::vector<std::byte>& bytes) {
  return parse_gguf(bytes, "FILE");
}

// What the parser says; also holds every answer against the promises of all answers.
std::string refusal(const std::vector<std::byte>& bytes) {
  const auto contents = parse(bytes);
  if (contents) {
    read_everything(*contents, bytes);
    return "accepted";
  }
  const std::string& message = contents.error().message();
  EXPECT_TRUE(message.starts_with("FILE: ")) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

TEST(GgufParse, ReadsTheSample) {
  const RawFile file = sample();
  const auto contents = parse(file.bytes());
  ASSERT_TRUE(contents) << contents.error().message();
  EXPECT_EQ(contents->version, 3u);
  EXPECT_EQ(contents->alignment, 16u);
  ASSERT_EQ(contents->entries.size(), 5u);
  EXPECT_EQ(contents->entries[1].string(), "hello");
  EXPECT_TRUE(contents->entries[2].boolean());
  EXPECT_EQ(contents->entries[3].array().string(0), "ab");
  EXPECT_EQ(contents->entries[3].array().string(1), "");
  EXPECT_EQ(contents->entries[4].array().number(1), -0.5);
  ASSERT_EQ(contents->tensors.size(), 2u);
  EXPECT_EQ(contents->tensors[0].view.dtype, DType::kQ8_0);
  EXPECT_EQ(contents->tensors[0].view.shape, (std::array<std::int64_t, 4>{2, 32, 1, 1}));
  EXPECT_EQ(contents->tensors[0].view.size_bytes(), 68);
  EXPECT_EQ(contents->tensors[1].view.data, file.bytes().data() + file.bytes().size() - 32);
  read_everything(*contents, file.bytes());
}

TEST(GgufParse, RefusesTheFileCutAtEveryByte) {
  const std::vector<std::byte> whole = sample().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A vector of its own, so that a sanitizer sees a read past the cut.
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<long>(size));
    EXPECT_NE(refusal(cut), "accepted") << "cut at " << size;
  }
}

TEST(GgufParse, SurvivesHostileValuesInEveryField) {
  constexpr std::uint64_t kHostile[] = {0,
                                        1,
                                        2,
                                        3,
                                        9,
                                        31,
                                        33,
                                        0x7F,
                                        0x80,
                                        0xFF,
                                        0x100,
                                        0x7FFF,
                                        0xFFFF,
                                        0x10000,
                                        0x7FFFFFFF,
                                        0x80000000,
                                        0xFFFFFFFE,
                                        0xFFFFFFFF,
                                        0x100000000,
                                        0x800000000005,
                                        0x2000000000000000,
                                        0x3FFFFFFFFFFFFFFF,
                                        0x4000000000000000,
                                        0x7FFFFFFFFFFFFFFF,
                                        0x8000000000000000,
                                        0xFFFFFFFFFFFFFFE0,
                                        0xFFFFFFFFFFFFFFFF};
  const RawFile file = sample();
  for (const RawFile::Field& field : file.fields()) {
    for (const std::uint64_t value : kHostile) refusal(file.with(field.name, value));
  }
  // Two sizes at once, for products that wrap.
  for (const std::uint64_t a : kHostile) {
    for (const std::uint64_t b : kHostile) {
      RawFile both = sample();
      std::vector<std::byte> bytes = both.with("weight.q.ne0", a);
      const std::vector<std::byte> second = both.with("weight.q.ne1", b);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (second[i] != both.bytes()[i]) bytes[i] = second[i];
      }
      refusal(bytes);
    }
  }
}

TEST(GgufParse, SurvivesRandomChangesOfBytes) {
  const std::vector<std::byte> whole = sample().bytes();
  int num_accepted = 0;
  for (std::uint32_t round = 0; round < 30000; ++round) {
    std::vector<std::byte> bytes = whole;
    const auto words = philox4x32({round, 0, 0, 0}, {20240601, 0});
    for (std::uint32_t i = 0; i <= words[0] % 3; ++i) {
      bytes[words[1 + i] % bytes.size()] = static_cast<std::byte>(words[1 + i] >> 24);
    }
    num_accepted += refusal(bytes) == "accepted";
  }
  EXPECT_GT(num_accepted, 1000);  // bytes of tensors and strings may be anything
  EXPECT_LT(num_accepted, 29000);
}

TEST(GgufParse, SaysWhatIsWrongInTheHeader) {
  const RawFile file = sample();
  EXPECT_THAT(refusal({}), HasSubstr("not a GGUF file"));
  EXPECT_THAT(refusal(file.with("magic", 0x04034B50)), HasSubstr("starts with 'PK"));
  EXPECT_THAT(refusal(file.with("magic", 0x47475546)), HasSubstr("big-endian"));
  EXPECT_THAT(refusal(file.with("version", 0x03000000)), HasSubstr("big-endian"));
  EXPECT_EQ(refusal(file.with("version", 2)), "accepted");
  for (const std::uint64_t version : {0, 1, 4, 1000}) {
    EXPECT_THAT(refusal(file.with("version", version)), HasSubstr("GGUF version"));
  }
  EXPECT_THAT(refusal(file.with("num_keys", 1ull << 63)), HasSubstr("9223372036854775808"));
  EXPECT_THAT(refusal(file.with("num_tensors", 1ull << 32)), HasSubstr("4294967296 tensors"));
}

TEST(GgufParse, SaysWhatIsWrongInTheMetadata) {
  const RawFile file = sample();
  EXPECT_THAT(refusal(file.with_text("a.bool", std::string_view("a\0bool", 6))),
              HasSubstr("'a\\x00bool' has a zero byte"));
  EXPECT_THAT(refusal(file.with_text("a.bool",
                                     "a\xC3"
                                     "bool")),
              HasSubstr("is not UTF-8"));
  EXPECT_THAT(refusal(file.with_text("some.tokens", "some.scores")),
              HasSubstr("key 'some.scores' is there twice"));
  EXPECT_THAT(refusal(file.with("bool.length", 0)), HasSubstr("name of key 3 of 5 is empty"));
  EXPECT_THAT(refusal(file.with("bool.value", 2)), HasSubstr("'a.bool' has a bool"));
  EXPECT_THAT(refusal(file.with("string.type", 13)), HasSubstr("unknown value type 13"));
  EXPECT_THAT(refusal(file.with("string.value.length", 1ull << 63)),
              HasSubstr("'a.string' claims 9223372036854775808 bytes"));
  EXPECT_THAT(refusal(file.with("tokens.count", 1ull << 62)),
              HasSubstr("'some.tokens' claims 4611686018427387904 strings"));
  EXPECT_THAT(refusal(file.with("scores.count", 1ull << 62)),
              HasSubstr("'some.scores' claims 4611686018427387904 values"));
  EXPECT_THAT(refusal(file.with("tokens.element_type", 9)), HasSubstr("array of arrays"));
  for (const std::uint64_t alignment : {0u, 3u, 24u, 1u << 21, 0xFFFFFFFFu}) {
    EXPECT_THAT(refusal(file.with("alignment.value", alignment)), HasSubstr("general.alignment"));
  }
  EXPECT_THAT(refusal(file.with("alignment.type", 6)), HasSubstr("general.alignment"));
}

TEST(GgufParse, SaysWhatIsWrongWithATensor) {
  const RawFile file = sample();
  const auto tensor = [](std::string_view rest) {
    return HasSubstr("tensor 'weight.q' " + std::string(rest));
  };
  EXPECT_THAT(refusal(file.with("weight.q.rank", 0)), tensor("has 0 dimensions"));
  EXPECT_THAT(refusal(file.with("weight.q.rank", 9)), tensor("has 9 dimensions"));
  EXPECT_THAT(refusal(file.with("weight.q.ne1", 0)), tensor("has a dimension of 0"));
  EXPECT_THAT(refusal(file.with("weight.q.ne0", 33)), tensor("has rows of 33 elements"));
  // 32 * 2^59 * 2 wraps to 0, and so on.
  EXPECT_THAT(refusal(file.with("weight.q.ne1", 1ull << 59)), tensor("of 32 x 576460752303423488"));
  EXPECT_THAT(refusal(file.with("weight.q.ne1", ~0ull)), tensor("of 32 x 18446744073709551615"));
  EXPECT_THAT(refusal(file.with("weight.q.type", 4)), tensor("has the unknown type 4"));
  EXPECT_THAT(refusal(file.with("weight.q.type", 200)), tensor("has the unknown type 200"));
  EXPECT_THAT(refusal(file.with("weight.q.type", 16)), tensor("has type IQ2_XXS"));
  EXPECT_THAT(refusal(file.with("weight.q.offset", 8)), tensor("is at data offset 8"));
  EXPECT_THAT(refusal(file.with("weight.q.offset", 1ull << 40)), HasSubstr("past the end"));
  EXPECT_THAT(refusal(file.with("weight.q.offset", ~0ull - 15)), HasSubstr("past the end"));
  EXPECT_THAT(refusal(file.with("weight.f.offset", 48)),
              HasSubstr("'weight.q' and 'weight.f' share bytes"));
  EXPECT_THAT(refusal(file.with_text("weight.f", "weight.q")), tensor("is there twice"));
}

TEST(IndexByName, NamesTheLaterOfTwo) {
  const std::vector<std::string> names = {"b", "a", "c", "a"};
  const auto name = [&](std::uint32_t i) -> std::string_view { return names[i]; };
  EXPECT_EQ(index_by_name(4, name).duplicate, 3u);
  const NameIndex index = index_by_name(3, name);
  EXPECT_FALSE(index.duplicate);
  EXPECT_EQ(index.order, (std::vector<std::uint32_t>{1, 0, 2}));
}

}  // namespace
}  // namespace dunlin
