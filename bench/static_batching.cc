// static_batching MODEL [--key value ...]: the same requests through the engine in three ways, to
// show what continuous batching gives. JSON on stdout.
//   continuous  each request goes in when it arrives
//   ragged      B requests together; the next B when all of these are done (Orca's baseline)
//   padded      the same, with every prompt padded to the longest of its batch, and every answer
//               computed on to the longest: what a rectangle of tensors needs
// Tokens are counted as their clients asked for them; a time is the moment a client could see it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontend/session.h"
#include "loadgen/summary.h"
#include "loadgen/workload.h"

namespace {

using dunlin::TokenStream;
using dunlin::loadgen::LoadRequest;
using dunlin::loadgen::RequestRecord;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct Options {
  std::string model;
  std::map<std::string, std::string> values{{"modes", "continuous,ragged,padded"},
                                            {"batch", "16"},
                                            {"requests", "64"},
                                            {"rate", "inf"},
                                            {"seed", "1"},
                                            {"input", "32:1024"},
                                            {"output", "16:256"},
                                            {"threads", "0"}};
  int number(const char* key) const { return std::stoi(values.at(key)); }
  dunlin::loadgen::LengthRange range(const char* key) const {
    const std::string& text = values.at(key);
    const std::size_t colon = text.find(':');
    const int least = std::stoi(text);
    return {least, colon == text.npos ? least : std::stoi(text.substr(colon + 1))};
  }
};

// Wakes the one thread that reads all streams.
class Bell {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    changed_.notify_one();
  }
  void wait_until(Clock::time_point until) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until, [this] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

class Run {
 public:
  Run(dunlin::Engine& engine, const std::vector<LoadRequest>& workload)
      : engine_(engine), workload_(workload), records_(workload.size()), begin_(Clock::now()) {}

  void continuous() {
    while (num_done_ < workload_.size()) {
      while (next_ < workload_.size() && workload_[next_].arrival_s <= now_s()) {
        submit(next_, workload_[next_].ids, workload_[next_].max_tokens);
        ++next_;
      }
      read();
    }
  }

  void batches(std::size_t batch, bool is_padded) {
    while (next_ < workload_.size()) {
      const std::size_t end = std::min(next_ + batch, workload_.size());
      while (workload_[end - 1].arrival_s > now_s())  // a static batch waits until it is full
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::size_t longest = 0;
      int most = 0;
      for (std::size_t i = next_; i < end; ++i) {
        longest = std::max(longest, workload_[i].ids.size());
        most = std::max(most, workload_[i].max_tokens);
      }
      for (std::size_t i = next_; i < end; ++i) {
        std::vector<dunlin::TokenId> ids = workload_[i].ids;
        if (is_padded) ids.insert(ids.begin(), longest - ids.size(), ids.front());
        submit(i, std::move(ids), is_padded ? most : workload_[i].max_tokens);
      }
      next_ = end;
      while (num_done_ < next_) read();
    }
  }

  Json result(const std::string& mode) {
    dunlin::loadgen::SummaryOptions options;
    options.percentiles = {99};
    for (const RequestRecord& record : records_)
      options.duration_s = std::max(options.duration_s, record.start_s + record.end_s);
    const auto summary = summarize(records_, options);
    return {{"mode", mode},
            {"duration_s", summary.duration_s},
            {"requests_per_s", summary.request_throughput},
            {"output_tokens_per_s", summary.output_throughput},
            {"median_ttft_ms", summary.ttft_ms.median},
            {"p99_ttft_ms", summary.ttft_ms.percentiles[0]},
            {"median_latency_ms", summary.e2el_ms.median},
            {"p99_latency_ms", summary.e2el_ms.percentiles[0]},
            {"p99_itl_ms", summary.itl_ms.percentiles[0]}};
  }

 private:
  struct Running {
    std::size_t index;
    std::unique_ptr<TokenStream> stream;
  };

  double now_s() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  void submit(std::size_t index, std::vector<dunlin::TokenId> ids, int max_tokens) {
    dunlin::EngineRequest request;
    request.prompt = std::move(ids);
    request.sampling.max_tokens = max_tokens;
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    auto stream = engine_.submit(std::move(request));
    if (!stream) {
      fmt::print(stderr, "static_batching: {}\n", stream.error().message());
      std::exit(1);
    }
    records_[index].index = index;
    records_[index].start_s = workload_[index].arrival_s;  // the client waits from here on
    running_.push_back({index, std::move(*stream)});
    running_.back().stream->on_ready([this] { bell_.ring(); });
  }

  void read() {
    auto until = Clock::now() + std::chrono::seconds(1);
    if (next_ < workload_.size())
      until =
          std::min(until, begin_ + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(workload_[next_].arrival_s)));
    bell_.wait_until(until);
    for (Running& running : running_) {
      RequestRecord& record = records_[running.index];
      while (const auto output = running.stream->poll()) {
        if (output->token) note_token(record);
        if (output->finish != dunlin::FinishReason::kNone) {
          record.end_s = now_s() - record.start_s;
          running.stream.reset();
          ++num_done_;
          break;
        }
      }
    }
    std::erase_if(running_, [](const Running& running) { return running.stream == nullptr; });
  }

  void note_token(RequestRecord& record) {
    if (record.output_tokens == workload_[record.index].max_tokens) return;  // padding
    const double at_s = now_s() - record.start_s;
    if (record.first_piece_s < 0) {
      record.first_piece_s = at_s;
    } else {
      record.gaps_s.push_back(static_cast<float>(at_s - record.last_piece_s));
    }
    record.last_piece_s = at_s;
    ++record.output_tokens;
    record.has_usage = true;
  }

  dunlin::Engine& engine_;
  const std::vector<LoadRequest>& workload_;
  std::vector<RequestRecord> records_;
  Clock::time_point begin_;
  std::vector<Running> running_;
  std::size_t next_ = 0, num_done_ = 0;
  Bell bell_;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

int measure(const Options& options) {
  const int batch = options.number("batch");
  dunlin::SessionConfig config;
  config.model_path = options.model;
  config.num_threads = options.number("threads");
  config.engine.max_seqs = batch;
  config.engine.max_queue = options.number("requests") + batch;
  config.engine.max_context = options.range("input").most + options.range("output").most + 1;
  config.engine.prefix_cache = false;  // the modes must not help each other
  auto session = dunlin::Session::open(config, {});
  if (!session) {
    fmt::print(stderr, "static_batching: {}\n", session.error().message());
    return 1;
  }
  dunlin::loadgen::WorkloadSpec spec;
  spec.num_requests = options.number("requests");
  spec.seed = static_cast<std::uint64_t>(options.number("seed"));
  spec.input_len = options.range("input");
  spec.output_len = options.range("output");
  spec.request_rate = std::stod(options.values.at("rate"));
  spec.form = {true, 1000, 19'999};
  const auto workload = make_workload(spec);
  Json results = Json::array();
  for (const std::string& mode : split(options.values.at("modes"))) {
    Run run((*session)->engine(), *workload);
    if (mode == "continuous") {
      run.continuous();
    } else {
      run.batches(static_cast<std::size_t>(batch), mode == "padded");
    }
    results.push_back(run.result(mode));
  }
  fmt::print("{}\n", results.dump(2));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bool is_ok = argc >= 2 && argc % 2 == 0;
  if (is_ok) options.model = argv[1];
  for (int i = 2; is_ok && i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    is_ok = key.starts_with("--") && options.values.contains(key.substr(2));
    if (is_ok) options.values[key.substr(2)] = argv[i + 1];
  }
  if (!is_ok) {
    std::fputs(
        "usage: static_batching MODEL.gguf [--modes continuous,ragged,padded] [--batch 16]\n"
        "       [--requests 64] [--rate inf] [--seed 1] [--input 32:1024] [--output 16:256]\n"
        "       [--threads 0]\n",
        stderr);
    return 2;
  }
  return measure(options);
}
