#include "formats/gguf.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf_writer.h"
#include "support/scratch_folder.h"

namespace dunlin {
namespace {

using testing::HasSubstr;

class GgufFileTest : public testing::Test {
 protected:
  std::string in_folder(const std::string& name) const { return folder_ + "/" + name; }

  std::shared_ptr<const GgufFile> open(const GgufWriter& writer) {
    const std::string path = in_folder("model.gguf");
    const Outcome written = writer.write(path);
    EXPECT_TRUE(written) << written.error().message();
    auto file = GgufFile::open(path);
    EXPECT_TRUE(file) << file.error().message();
    return *file;
  }

  // Part `idx` of `count`, with one tensor that is named after it.
  GgufWriter part(int idx, int count, int num_tensors) {
    GgufWriter writer;
    if (idx == 0) writer.set_string("general.architecture", "llama");
    writer.set_u16("split.no", static_cast<std::uint16_t>(idx));
    writer.set_u16("split.count", static_cast<std::uint16_t>(count));
    writer.set_i32("split.tensors.count", num_tensors);
    add_tensor(writer, "t" + std::to_string(idx), idx);
    return writer;
  }
  static void add_tensor(GgufWriter& writer, const std::string& name, int value) {
    const std::int64_t shape[] = {8};
    writer.add_tensor(name, DType::kI8, shape, std::vector(8, static_cast<std::byte>(value)));
  }
  static std::string part_name(int idx, int count) {
    char name[64];
    std::snprintf(name, sizeof(name), "model-%05d-of-%05d.gguf", idx + 1, count);
    return name;
  }
  void write_parts(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(part(i, count, count).write(in_folder(part_name(i, count))));
    }
  }
  std::string refusal(const std::string& name) {
    const auto file = GgufFile::open(in_folder(name));
    return file ? "accepted" : file.error().message();
  }

  ScratchFolder scratch_;
  const std::string& folder_ = scratch_.path();
};

TEST_F(GgufFileTest, NamesAFileThatIsMissing) {
  const auto file = GgufFile::open(in_folder("none.gguf"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), StatusCode::kNotFound);
  EXPECT_THAT(file.error().message(), HasSubstr("none.gguf"));
}

TEST_F(GgufFileTest, GivesBackWhatTheWriterWrote) {
  GgufWriter writer(64);
  writer.set_u32("u32", 4000000000u);
  writer.set_i32("i32", -5);
  writer.set_u16("u16", 65535);
  writer.set_u64("u64", 1ull << 40);
  writer.set_f32("f32", 0.25f);
  writer.set_bool("bool", true);
  writer.set_string("string", "text");
  const std::vector<std::string> strings = {"a", "", "longer"};
  writer.set_strings("strings", strings);
  const std::vector<std::int32_t> integers = {1, -2};
  writer.set_i32s("integers", integers);
  const std::vector<float> floats = {0.5f};
  writer.set_f32s("floats", floats);
  const std::int64_t shape[] = {2, 3, 4};
  std::vector<std::byte> bytes(2 * 3 * 4 * 4, std::byte{0x3F});
  writer.add_tensor("cube", DType::kF32, shape, bytes);
  add_tensor(writer, "row", 9);

  const auto file = open(writer);
  EXPECT_EQ(file->alignment(), 64u);
  EXPECT_EQ(file->num_parts(), 1);
  EXPECT_EQ(*file->get_u32("u32"), 4000000000u);
  EXPECT_EQ(*file->get_i32("i32"), -5);
  EXPECT_EQ(*file->get_u64("u64"), 1ull << 40);
  EXPECT_EQ(*file->get_f32("f32"), 0.25f);
  EXPECT_TRUE(*file->get_bool("bool"));
  EXPECT_EQ(*file->get_string("string"), "text");
  ASSERT_EQ(file->get_strings("strings")->size(), 3u);
  EXPECT_EQ(file->get_strings("strings")->string(2), "longer");
  EXPECT_EQ(file->get_integers("integers")->integer(1), -2);
  EXPECT_EQ(file->get_numbers("integers")->number(0), 1.0);
  EXPECT_EQ(file->get_numbers("floats")->number(0), 0.5);
  const GgufTensor* cube = file->find_tensor("cube");
  ASSERT_NE(cube, nullptr);
  EXPECT_EQ(cube->view.rank, 3);
  EXPECT_EQ(cube->view.shape, (std::array<std::int64_t, 4>{2, 3, 4, 1}));
  EXPECT_EQ(cube->view.data[95], std::byte{0x3F});
  EXPECT_EQ(file->find_tensor("row")->view.data[7], std::byte{9});
  EXPECT_EQ(file->find_tensor("other"), nullptr);
}

TEST_F(GgufFileTest, TakesIntegersOfAnyWidthThatFit) {
  GgufWriter writer;
  writer.set_u16("small", 7);
  writer.set_i32("negative", -1);
  writer.set_u64("large", 1ull << 32);
  writer.set_u64("huge", ~0ull);
  writer.set_string("word", "7");
  const auto file = open(writer);
  EXPECT_EQ(*file->get_u32("small"), 7u);
  EXPECT_EQ(*file->get_u64("small"), 7u);
  EXPECT_THAT(file->get_u32("negative").error().message(), HasSubstr("'negative' is -1"));
  EXPECT_THAT(file->get_u32("large").error().message(), HasSubstr("not from 0 to 4294967295"));
  EXPECT_FALSE(file->get_i32("huge"));
  EXPECT_THAT(file->get_u32("word").error().message(), HasSubstr("of type string, not an integer"));
}

TEST_F(GgufFileTest, ADefaultIsForAMissingKeyOnly) {
  GgufWriter writer;
  writer.set_string("word", "x");
  const auto file = open(writer);
  EXPECT_EQ(*file->get_u32("none", 3u), 3u);
  EXPECT_EQ(*file->get_string("none", "y"), "y");
  EXPECT_FALSE(file->get_u32("word", 3u));
  EXPECT_FALSE(file->get_f32("word", 1.0f));
  EXPECT_FALSE(file->get_bool("word", true));
  EXPECT_EQ(file->get_u32("none").error().code(), StatusCode::kNotFound);
  EXPECT_THAT(file->get_u32("none").error().message(), HasSubstr("key 'none' is missing"));
  EXPECT_FALSE(file->get_strings("word"));
}

TEST_F(GgufFileTest, AFileWithoutTensorsOpens) {
  GgufWriter writer;
  writer.set_string("general.architecture", "llama");
  EXPECT_TRUE(open(writer)->tensors().empty());
}

TEST_F(GgufFileTest, OpensAllPartsByAnyOfThem) {
  write_parts(3);
  for (int i = 0; i < 3; ++i) {
    const auto file = GgufFile::open(in_folder(part_name(i, 3)));
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ((*file)->num_parts(), 3);
    EXPECT_EQ(*(*file)->get_string("general.architecture"), "llama");
    ASSERT_EQ((*file)->tensors().size(), 3u);
    for (int t = 0; t < 3; ++t) {
      const GgufTensor* tensor = (*file)->find_tensor("t" + std::to_string(t));
      ASSERT_NE(tensor, nullptr);
      EXPECT_EQ(tensor->part_idx, t);
      EXPECT_EQ(tensor->view.data[0], static_cast<std::byte>(t));
      (*file)->drop_pages(tensor->view);
    }
    EXPECT_TRUE((*file)->check_unchanged());
  }
}

TEST_F(GgufFileTest, NamesTheMissingPart) {
  write_parts(3);
  std::filesystem::remove(in_folder(part_name(1, 3)));
  EXPECT_THAT(refusal(part_name(0, 3)),
              testing::AllOf(HasSubstr("part 2 of 3 is missing"), HasSubstr(part_name(1, 3))));
}

TEST_F(GgufFileTest, RefusesPartsThatDoNotBelongTogether) {
  write_parts(2);
  const std::string second = in_folder(part_name(1, 2));
  std::filesystem::copy_file(in_folder(part_name(0, 2)), second,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(part_name(0, 2)), HasSubstr("it is part 1 of 2, not part 2 of 2"));

  std::filesystem::remove(second);
  GgufWriter again = part(1, 2, 2);
  add_tensor(again, "t0", 5);
  ASSERT_TRUE(again.write(second));
  EXPECT_THAT(refusal(part_name(0, 2)), HasSubstr("tensor 't0' is in an earlier part too"));

  std::filesystem::remove(second);
  GgufWriter more = part(1, 2, 2);
  add_tensor(more, "extra", 5);
  ASSERT_TRUE(more.write(second));
  EXPECT_THAT(refusal(part_name(0, 2)), HasSubstr("'split.tensors.count' is 2"));
}

TEST_F(GgufFileTest, SaysThatARenamedPartCannotFindTheOthers) {
  ASSERT_TRUE(part(0, 2, 2).write(in_folder("renamed.gguf")));
  EXPECT_THAT(refusal("renamed.gguf"), HasSubstr("-of-00002.gguf"));
}

TEST_F(GgufFileTest, SeesThatThePartOnDiskWasShortened) {
  write_parts(2);
  const auto file = GgufFile::open(in_folder(part_name(0, 2)));
  ASSERT_TRUE(file);
  std::filesystem::resize_file(in_folder(part_name(1, 2)), 10);
  const Outcome outcome = (*file)->check_unchanged();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message(), HasSubstr(part_name(1, 2)));
}

TEST_F(GgufFileTest, TheWriterOverwritesNothing) {
  std::ofstream(in_folder("mine.gguf")) << "mine";
  const Outcome written = part(0, 1, 1).write(in_folder("mine.gguf"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(std::filesystem::file_size(in_folder("mine.gguf")), 4u);
  EXPECT_FALSE(part(0, 1, 1).write(in_folder("no/such/folder.gguf")));
}

TEST_F(GgufFileTest, a_part_file_is_taken_over_unless_it_is_a_link_or_in_use) {
  const GgufWriter writer = part(0, 1, 1);
  const std::string path = in_folder("made.gguf"), left = path + ".part";
  std::ofstream(in_folder("other")) << "mine";
  std::filesystem::create_symlink(in_folder("other"), left);
  EXPECT_FALSE(writer.write(path));
  EXPECT_EQ(std::filesystem::file_size(in_folder("other")), 4u);
  std::filesystem::remove(left);

  const int fd = ::open(left.c_str(), O_WRONLY | O_CREAT, 0666);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  const Outcome in_use = writer.write(path);
  ASSERT_FALSE(in_use);
  EXPECT_THAT(in_use.error().message(), HasSubstr("made.gguf.part: another program is writing it"));
  EXPECT_TRUE(std::filesystem::exists(left));
  ::close(fd);

  EXPECT_TRUE(writer.write(path));
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(GgufFileTest, a_name_that_cannot_be_written_is_refused) {
  const Outcome written = part(0, 1, 1).write(in_folder(std::string(300, 'a')));
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message(), HasSubstr("cannot write it"));
}

}  // namespace
}  // namespace dunlin
