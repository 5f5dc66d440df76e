// `dunlin eval kv`: every way to shrink the KV cache or to read less of it, side by side.
#pragma once

namespace CLI {
class App;
}

namespace dunlin::cli {

struct Invocation;

void add_eval_kv(CLI::App& eval, Invocation& invocation);

}  // namespace dunlin::cli
