// `dunlin bench throughput` and `dunlin bench latency`: the whole engine without a server, with
// vLLM's meanings of the two.
#pragma once

namespace CLI {
class App;
}

namespace dunlin::cli {

struct Invocation;

void add_bench_throughput(CLI::App& bench, Invocation& invocation);
void add_bench_latency(CLI::App& bench, Invocation& invocation);

}  // namespace dunlin::cli
