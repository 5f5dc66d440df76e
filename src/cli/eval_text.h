// `dunlin eval perplexity` and `dunlin eval kld`: how well a model foretells a text.
#pragma once

namespace CLI {
class App;
}

namespace dunlin::cli {

struct Invocation;

void add_eval_perplexity(CLI::App& eval, Invocation& invocation);
void add_eval_kld(CLI::App& eval, Invocation& invocation);

}  // namespace dunlin::cli
