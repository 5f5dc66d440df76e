#include "loadgen/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "loadgen/request_body.h"
#include "support/scratch_folder.h"

namespace dunlin::loadgen {
namespace {

using ::testing::HasSubstr;

std::vector<LoadRequest> made(const WorkloadSpec& spec) {
  auto workload = make_workload(spec);
  EXPECT_TRUE(workload.has_value()) << workload.error().message();
  return workload ? std::move(*workload) : std::vector<LoadRequest>();
}

WorkloadSpec random_spec(int n) {
  WorkloadSpec spec;
  spec.num_requests = n;
  spec.input_len = {32, 1024};
  spec.output_len = {16, 256};
  spec.form.as_ids = true;
  return spec;
}

TEST(Workload, IsAFunctionOfTheSeed) {
  WorkloadSpec spec = random_spec(50);
  spec.request_rate = 3;
  spec.leave_share = .5;
  const auto first = made(spec), again = made(spec);
  spec.num_requests = 20;
  const auto shorter = made(spec);
  spec.seed = 1;
  const auto other = made(spec);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(first[i].ids, again[i].ids);
    EXPECT_EQ(first[i].arrival_s, again[i].arrival_s);
    EXPECT_EQ(first[i].leave_after_pieces, again[i].leave_after_pieces);
    EXPECT_EQ(first[i].ids, shorter[i].ids);
    EXPECT_NE(first[i].ids, other[i].ids);
  }
}

TEST(Workload, KeepsItsRangesAndReachesTheirEnds) {
  WorkloadSpec spec = random_spec(3000);
  spec.input_len = {3, 7};
  spec.form.first_id = 10;
  spec.form.last_id = 13;
  int least = 100, most = 0;
  TokenId least_id = 100, most_id = 0;
  double sum = 0;
  for (const LoadRequest& request : made(spec)) {
    least = std::min(least, request.prompt_len);
    most = std::max(most, request.prompt_len);
    EXPECT_EQ(request.ids.size(), static_cast<std::size_t>(request.prompt_len));
    for (const TokenId id : request.ids) {
      least_id = std::min(least_id, id);
      most_id = std::max(most_id, id);
    }
    sum += request.max_tokens;
  }
  EXPECT_EQ(least, 3);
  EXPECT_EQ(most, 7);
  EXPECT_EQ(least_id, 10);
  EXPECT_EQ(most_id, 13);
  EXPECT_NEAR(sum / 3000, 136, 5);
}

TEST(Workload, PoissonArrivalsHaveTheirRate) {
  const auto times = poisson_arrivals(20'000, 4, 7);
  EXPECT_EQ(times.front(), 0);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_NEAR(times.back() / 19'999, .25, .01);
  // An exponential's standard deviation is its mean; 1/e of its values are larger than it.
  double squares = 0;
  int larger = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    const double gap = times[i] - times[i - 1];
    squares += (gap - .25) * (gap - .25);
    larger += gap > .25 ? 1 : 0;
  }
  EXPECT_NEAR(std::sqrt(squares / 19'999), .25, .01);
  EXPECT_NEAR(larger / 19'999., std::exp(-1), .015);
  const auto at_once = poisson_arrivals(5, std::numeric_limits<double>::infinity(), 7);
  EXPECT_EQ(at_once, std::vector<double>(5, 0.0));
}

TEST(Workload, PrefixesAreShared) {
  WorkloadSpec spec = random_spec(40);
  spec.kind = WorkloadKind::kSharedPrefix;
  spec.prefix_len = 64;
  spec.num_prefixes = 2;
  const auto workload = made(spec);
  const auto prefix = [](const LoadRequest& request) {
    return std::vector<TokenId>(request.ids.begin(), request.ids.begin() + 64);
  };
  std::vector<std::vector<TokenId>> prefixes;
  for (const LoadRequest& request : workload) {
    EXPECT_EQ(request.ids.size(), static_cast<std::size_t>(request.prompt_len));
    EXPECT_GE(request.prompt_len, 64 + 32);
    prefixes.push_back(prefix(request));
  }
  std::sort(prefixes.begin(), prefixes.end());
  prefixes.erase(std::unique(prefixes.begin(), prefixes.end()), prefixes.end());
  EXPECT_EQ(prefixes.size(), 2u);
  // What warms up shares nothing with what is measured.
  for (const LoadRequest& request : make_warmup(workload, 3, spec)) {
    EXPECT_EQ(std::count(prefixes.begin(), prefixes.end(), prefix(request)), 0);
  }
}

TEST(Workload, WordsStandForTokensInText) {
  WorkloadSpec spec = random_spec(5);
  spec.form.as_ids = false;
  for (const LoadRequest& request : made(spec)) {
    EXPECT_TRUE(request.ids.empty());
    EXPECT_EQ(std::count(request.text.begin(), request.text.end(), ' ') + 1, request.prompt_len);
  }
}

TEST(Workload, ShareGptsLengthsWithoutItsFile) {
  WorkloadSpec spec = random_spec(5000);
  spec.kind = WorkloadKind::kShareGpt;
  double input = 0, output = 0;
  for (const LoadRequest& request : made(spec)) {
    EXPECT_GE(request.prompt_len, 4);
    EXPECT_LE(request.prompt_len, 1024);
    input += request.prompt_len / 5000.;
    output += request.max_tokens / 5000.;
  }
  EXPECT_NEAR(input, 161, 20);
  EXPECT_NEAR(output, 338, 35);
}

TEST(Workload, SomeClientsLeave) {
  WorkloadSpec spec = random_spec(4000);
  spec.leave_share = .3;
  int early = 0, midway = 0;
  for (const LoadRequest& request : made(spec)) {
    early += request.leave_after_ms >= 0 ? 1 : 0;
    midway += request.leave_after_pieces >= 0 ? 1 : 0;
    EXPECT_LT(request.leave_after_pieces, std::max(request.max_tokens, 2));
  }
  EXPECT_NEAR(early, 300, 60);
  EXPECT_NEAR(midway, 900, 90);
}

class Dataset : public ::testing::Test {
 protected:
  std::string file(const std::string& text) {
    const std::string path = folder_.path() + "/data.json";
    std::ofstream(path) << text;
    return path;
  }
  Result<std::vector<LoadRequest>> read(WorkloadKind kind, const std::string& text, int count) {
    WorkloadSpec spec;
    spec.kind = kind;
    spec.num_requests = count;
    spec.dataset = file(text);
    return make_workload(spec);
  }
  ScratchFolder folder_;
};

TEST_F(Dataset, ShareGptGivesPromptsAndLengths) {
  const std::string question(40, 'q'), answer(100, 'a');
  const std::string good = R"({"id":"{x","conversations":[{"from":"human","value":")" + question +
                           R"("},{"from":"gpt","value":")" + answer + R"("}]})";
  const std::string one_turn = R"({"conversations":[{"from":"human","value":"hello there, you"}]})";
  const std::string text = "[" + one_turn + ",\n {\"conversations\": 3}, " + good + "]";
  const auto workload = read(WorkloadKind::kShareGpt, text, 3);
  ASSERT_TRUE(workload.has_value()) << workload.error().message();
  ASSERT_EQ(workload->size(), 3u);
  EXPECT_EQ((*workload)[2].text, question);
  EXPECT_EQ((*workload)[2].max_tokens, 25);
  for (const char* wrong : {"", "[]", "{", "[{\"a\":1}]", "\"{"}) {
    const auto refused = read(WorkloadKind::kShareGpt, wrong, 3);
    ASSERT_FALSE(refused.has_value()) << wrong;
    EXPECT_THAT(refused.error().message(), HasSubstr("conversation"));
  }
}

TEST_F(Dataset, ATraceIsReplayed) {
  const auto workload = read(WorkloadKind::kReplay,
                             "{\"arrival_s\": 2, \"prompt\": \"later\", \"max_tokens\": 5}\r\n\n"
                             "{\"arrival_s\": 0.5, \"prompt\": [1, 2, 3], \"max_tokens\": 6}\n"
                             "{\"timestamp\": 700, \"input_length\": 9, \"output_length\": 4}\n"
                             "{\"arrival_s\": 3, \"messages\": [{\"role\":\"user\"}]}",
                             100);
  ASSERT_TRUE(workload.has_value()) << workload.error().message();
  ASSERT_EQ(workload->size(), 4u);
  const auto& w = *workload;
  EXPECT_EQ(w[0].ids, (std::vector<TokenId>{1, 2, 3}));
  EXPECT_DOUBLE_EQ(w[1].arrival_s, .7);
  EXPECT_EQ(w[1].prompt_len, 9);
  EXPECT_EQ(std::count(w[1].text.begin(), w[1].text.end(), ' '), 8);
  EXPECT_EQ(w[2].text, "later");
  EXPECT_EQ(w[3].max_tokens, 128);

  BodyOptions options;
  const Outcome completions = check_form(w, options);
  ASSERT_FALSE(completions.has_value());
  EXPECT_THAT(completions.error().message(), HasSubstr("--endpoint chat"));
  options.endpoint = Endpoint::kChat;
  EXPECT_FALSE(check_form(w, options).has_value());  // ids
}

TEST_F(Dataset, AWrongLineIsNamed) {
  for (const char* wrong :
       {"nothing", "[1]", "{\"prompt\": 3}", "{\"prompt\": \"\"}", "{\"prompt\": [-1]}", "{}",
        "{\"prompt\": \"a\", \"max_tokens\": -3}", "{\"prompt\": \"a\", \"arrival_s\": \"x\"}",
        "{\"messages\": 1}", "{\"prompt_len\": 1e30}"}) {
    const auto refused =
        read(WorkloadKind::kReplay, "{\"prompt\": \"a\"}\n" + std::string(wrong), 100);
    ASSERT_FALSE(refused.has_value()) << wrong;
    EXPECT_THAT(refused.error().message(), HasSubstr("data.json: line 2: ")) << wrong;
  }
  EXPECT_FALSE(read(WorkloadKind::kReplay, "\n\n", 100).has_value());
}

TEST(RequestBody, SaysWhatIsAsked) {
  LoadRequest request;
  request.ids = {5, 6};
  request.max_tokens = 7;
  BodyOptions options;
  options.model = "m";
  options.ignore_eos = true;
  options.extra = R"({"priority": 2, "temperature": 1})";
  EXPECT_EQ(request_body(request, options),
            R"({"model":"m","prompt":[5,6],"max_tokens":7,"temperature":1,"stream":true,)"
            R"("stream_options":{"include_usage":true},"ignore_eos":true,"priority":2})");
  request.ids.clear();
  request.text = "hi";
  options = {};
  options.endpoint = Endpoint::kChat;
  EXPECT_THAT(request_body(request, options),
              HasSubstr(R"("messages":[{"role":"user","content":"hi"}])"));
  options.extra = "[1]";
  EXPECT_FALSE(check_form({}, options).has_value());
}

}  // namespace
}  // namespace dunlin::loadgen
