#include "formats/safetensors.h"

#include <cstring>
#include <fstream>

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace dunlin {
namespace {

std::string file_bytes(const std::string& header, std::size_t data_size) {
  std::string bytes(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(bytes.data(), &size, 8);
  bytes += header;
  for (std::size_t i = 0; i < data_size; ++i) bytes += static_cast<char>(i);
  return bytes;
}

Result<std::vector<SafetensorsTensor>> parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "f");
}

std::string refusal(const std::string& bytes) {
  const auto tensors = parse(bytes);
  return tensors ? "" : tensors.error().message();
}

std::string one(const std::string& info) { return "{\"t\": " + info + "}"; }

TEST(Safetensors, gives_typed_views_in_the_order_of_the_bytes) {
  const std::string bytes = file_bytes(
      R"({"__metadata__": {"format": "pt"},
          "b": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [8, 20]},
          "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
          "mask": {"dtype": "BOOL", "shape": [1, 1, 4], "data_offsets": [20, 24]},
          "scale": {"dtype": "F32", "shape": [], "data_offsets": [24, 28]}})",
      28);
  const auto tensors = parse(bytes);
  ASSERT_TRUE(tensors) << tensors.error().message();
  ASSERT_EQ(tensors->size(), 4u);
  const SafetensorsTensor& a = (*tensors)[0];
  const SafetensorsTensor& b = (*tensors)[1];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.view.rank, 1);
  EXPECT_EQ(b.view.dtype, DType::kBF16);
  EXPECT_EQ(b.view.rows(), 2);
  EXPECT_EQ(b.view.cols(), 3);
  EXPECT_EQ(std::to_integer<int>(b.view.data[0]), 8);
  EXPECT_FALSE((*tensors)[2].readable);
  EXPECT_EQ((*tensors)[3].view.num_elements(), 1);
}

TEST(Safetensors, refuses_headers_that_are_none) {
  EXPECT_EQ(refusal("abc"), "f: is no safetensors file: it has only 3 bytes");
  for (const std::uint64_t size : {0ull, 1ull, 9ull, 1ull << 40, ~0ull}) {
    std::string bytes(16, ' ');
    std::memcpy(bytes.data(), &size, 8);
    EXPECT_NE(refusal(bytes).find("is no safetensors file"), std::string::npos) << size;
  }
  EXPECT_NE(refusal(file_bytes("[1, 2]", 0)).find("not a JSON object"), std::string::npos);
  EXPECT_NE(refusal(file_bytes("{\"a\"", 0)).find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal(file_bytes("{\"a\":[[[[[1]]]]]}", 0)).find("nests deeper"), std::string::npos);
  EXPECT_NE(refusal(file_bytes(
                        R"({"t": {"dtype": "I8", "shape": [1], "data_offsets": [0, 1]},
                            "t": {"dtype": "I8", "shape": [1], "data_offsets": [0, 1]}})",
                        1))
                .find("twice"),
            std::string::npos);
}

TEST(Safetensors, refuses_tensors_that_lie_about_themselves) {
  const char* const wrong[] = {
      R"(3)",
      R"({"shape": [4], "data_offsets": [0, 4]})",
      R"({"dtype": 8, "shape": [4], "data_offsets": [0, 4]})",
      R"({"dtype": "Q4", "shape": [4], "data_offsets": [0, 4]})",
      R"({"dtype": "I8", "data_offsets": [0, 4]})",
      R"({"dtype": "I8", "shape": [4]})",
      R"({"dtype": "I8", "shape": [4], "data_offsets": []})",
      R"({"dtype": "I8", "shape": [4], "data_offsets": [0, 4, 8]})",
      R"({"dtype": "I8", "shape": [4], "data_offsets": [4, 0]})",
      R"({"dtype": "I8", "shape": [4], "data_offsets": [-4, 0]})",
      R"({"dtype": "I8", "shape": [4.0], "data_offsets": [0, 4]})",
      R"({"dtype": "I8", "shape": [5], "data_offsets": [0, 5]})",
      R"({"dtype": "I8", "shape": [3], "data_offsets": [0, 4]})",
      R"({"dtype": "I8", "shape": [4294967296, 4294967296], "data_offsets": [0, 4]})",
      R"({"dtype": "F64", "shape": [2305843009213693952], "data_offsets": [0, 4]})",
      R"({"dtype": "I8", "shape": [18446744073709551615], "data_offsets": [0, 4]})",
      R"({"dtype": "I8", "shape": [4], "data_offsets": [0, 18446744073709551615]})",
  };
  for (const char* info : wrong) {
    const std::string message = refusal(file_bytes(one(info), 4));
    EXPECT_TRUE(message.starts_with("f: tensor 't' ")) << info << ": " << message;
  }
}

TEST(Safetensors, refuses_overlaps_and_gaps) {
  const auto two = [](int first_begin, int second_begin) {
    return file_bytes("{\"a\": {\"dtype\": \"I8\", \"shape\": [4], \"data_offsets\": [" +
                          std::to_string(first_begin) + "," + std::to_string(first_begin + 4) +
                          "]}, \"b\": {\"dtype\": \"I8\", \"shape\": [4], \"data_offsets\": [" +
                          std::to_string(second_begin) + "," + std::to_string(second_begin + 4) +
                          "]}}",
                      8);
  };
  EXPECT_EQ(refusal(two(0, 4)), "");
  EXPECT_EQ(refusal(two(0, 2)), "f: tensor 'b' overlaps the one before it");
  EXPECT_EQ(refusal(two(0, 0)), "f: tensor 'b' overlaps the one before it");
  EXPECT_EQ(refusal(two(1, 3)), "f: 1 bytes before tensor 'a' belong to none");
  EXPECT_EQ(
      refusal(file_bytes(R"({"a": {"dtype": "I8", "shape": [4], "data_offsets": [0, 4]}})", 5)),
      "f: the last 1 bytes belong to no tensor");
}

class Folder {
 public:
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_.path() + "/" + name, std::ios::binary) << bytes;
  }
  std::string refusal() const {
    const auto opened = Safetensors::open_folder(folder_.path());
    return opened ? "" : opened.error().message().substr(folder_.path().size());
  }
  const std::string& path() const { return folder_.path(); }

 private:
  ScratchFolder folder_;
};

std::string shard(const std::string& name) {
  return file_bytes(
      "{\"" + name + "\": {\"dtype\": \"I8\", \"shape\": [4], \"data_offsets\": [0, 4]}}", 4);
}

TEST(Safetensors, opens_all_files_of_an_index) {
  Folder folder;
  folder.write("one.safetensors", shard("b"));
  folder.write("two.safetensors", shard("a"));
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"a": "two.safetensors", "b": "one.safetensors"}})");
  const auto opened = Safetensors::open_folder(folder.path());
  ASSERT_TRUE(opened) << opened.error().message();
  ASSERT_EQ((*opened)->tensors().size(), 2u);
  EXPECT_EQ((*opened)->tensors()[0].name, "a");
  EXPECT_NE((*opened)->find("b"), nullptr);
  EXPECT_EQ((*opened)->find("c"), nullptr);
  EXPECT_TRUE((*opened)->check_unchanged());
}

TEST(Safetensors, refuses_an_index_that_does_not_fit_its_files) {
  Folder folder;
  EXPECT_EQ(folder.refusal(),
            ": has neither model.safetensors nor model.safetensors.index.json; a model's folder "
            "holds config.json and its weights as safetensors");
  const auto index = [&](const std::string& text) {
    folder.write("model.safetensors.index.json", text);
    return folder.refusal();
  };
  folder.write("one.safetensors", shard("a"));
  folder.write("two.safetensors", shard("a"));
  EXPECT_NE(index(R"({"weight_map": []})").find("weight_map"), std::string::npos);
  EXPECT_NE(
      index(R"({"weight_map": {"a": "../one.safetensors"}})").find("not in a file of this folder"),
      std::string::npos);
  EXPECT_NE(index(R"({"weight_map": {"a": 3}})").find("not in a file of this folder"),
            std::string::npos);
  EXPECT_NE(index(R"({"weight_map": {"a": "three.safetensors"}})").find("not in the folder"),
            std::string::npos);
  EXPECT_NE(index(R"({"weight_map": {"b": "one.safetensors"}})").find("tensor 'b' is not in"),
            std::string::npos);
  EXPECT_NE(index(R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})")
                .find("tensor 'a' is in two files"),
            std::string::npos);
}

}  // namespace
}  // namespace dunlin
