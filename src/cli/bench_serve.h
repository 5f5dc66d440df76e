// `dunlin bench serve`: drives a server that speaks OpenAI's API and measures what its clients see.
#pragma once

namespace CLI {
class App;
}

namespace dunlin::cli {

struct Invocation;

void add_bench_serve(CLI::App& bench, Invocation& invocation);

}  // namespace dunlin::cli
