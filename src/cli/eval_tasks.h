// `dunlin eval needle` and `dunlin eval recall`: what a model finds again in its context.
#pragma once

namespace CLI {
class App;
}

namespace dunlin::cli {

struct Invocation;

void add_eval_needle(CLI::App& eval, Invocation& invocation);
void add_eval_recall(CLI::App& eval, Invocation& invocation);

}  // namespace dunlin::cli
