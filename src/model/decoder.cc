#include "model/decoder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/row_maxima.h"
#include "kernels/activation.h"
#include "kernels/embed.h"
#include "kernels/norm.h"
#include "kernels/row_chunks.h"
#include "model/common_keys.h"
#include "model/latent_attention.h"
#include "model/layers.h"
#include "model/moe.h"
#include "model/rope_setup.h"

namespace dunlin {
namespace {

// Whether a linear layer of the model has weights of plain floats, which take float inputs.
bool has_float_weights(const Weights& weights) {
  const auto is_float = [](const LinearWeights& linear) {
    return linear.matrix.rows() > 0 && dtype_info(linear.matrix.dtype()).block_size == 1;
  };
  if (is_float(weights.token_embedding) || is_float(weights.head)) return true;
  for (const LayerWeights& layer : weights.layers) {
    for (const LinearWeights* linear :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.latent.q_a, &layer.latent.q_b,
          &layer.latent.kv_a, &layer.moe.router, &layer.moe.shared_gate}) {
      if (is_float(*linear)) return true;
    }
    for (const auto* heads : {&layer.latent.k_b, &layer.latent.v_b})
      if (std::any_of(heads->begin(), heads->end(), is_float)) return true;
    const auto has_float = [&](const MlpWeights& mlp) {
      return is_float(mlp.gate) || is_float(mlp.up) || is_float(mlp.down);
    };
    if (has_float(layer.mlp) || has_float(layer.moe.shared)) return true;
    if (std::any_of(layer.moe.experts.begin(), layer.moe.experts.end(), has_float)) return true;
  }
  return false;
}

// As mix_experts() runs them.
void append_experts(const MoeConfig& config, const MoeWeights& moe, LinearOrder& order) {
  const auto task = [](const LinearWeights& linear) { return GemmTask{.weights = &linear.matrix}; };
  order.push_back({task(moe.router)});
  if (config.shared_gate) order.back().push_back(task(moe.shared_gate));
  order.emplace_back();
  if (config.shared_ffn_size > 0) order.push_back({task(moe.shared.down)});
  order.emplace_back();
}

// As attend_latent() runs them.
void append_latent(const LayerWeights& layer, LinearOrder& order) {
  const auto task = [](const LinearWeights& linear) { return GemmTask{.weights = &linear.matrix}; };
  const LatentWeights& latent = layer.latent;
  const bool has_q_latent = latent.q_a.matrix.rows() > 0;
  order.push_back({task(has_q_latent ? latent.q_a : layer.q), task(latent.kv_a)});
  if (has_q_latent) order.push_back({task(latent.q_b)});
  for (const auto* heads : {&latent.k_b, &latent.v_b}) {
    std::vector<GemmTask>& tasks = order.emplace_back();
    std::transform(heads->begin(), heads->end(), std::back_inserter(tasks), task);
  }
}

LinearOrder linear_order(const ModelConfig& config, const Weights& weights) {
  const auto task = [](const LinearWeights& linear) { return GemmTask{.weights = &linear.matrix}; };
  LinearOrder order;
  for (const LayerWeights& layer : weights.layers) {
    if (config.is_latent())
      append_latent(layer, order);
    else
      order.push_back({task(layer.q), task(layer.k), task(layer.v)});
    if (!config.parallel) order.push_back({task(layer.o)});
    if (!layer.moe.experts.empty()) {
      append_experts(config.moe, layer.moe, order);
      continue;
    }
    order.push_back({task(layer.mlp.up)});
    if (config.gated_mlp) order.back().insert(order.back().begin(), task(layer.mlp.gate));
    order.push_back({task(layer.mlp.down)});
    if (config.parallel) order.push_back({task(layer.o)});
  }
  order.push_back({task(config.tied_head ? weights.token_embedding : weights.head)});
  return order;
}

// Their blocks are written, but for the step's own.
void note_compactions(const ForwardBatch& batch, KvStorage& kv) {
  for (const ForwardBatch::Voter& voter : batch.voters) {
    if (voter.compaction.is_none()) continue;
    for (std::size_t g = 0; g < batch.groups.size(); ++g) {
      const ForwardBatch::Group& group = batch.groups[g];
      if (kv.layout().groups[g].window > 0) continue;
      const auto first = static_cast<std::size_t>(voter.seq * group.max_blocks_per_seq);
      const auto num = static_cast<std::size_t>(voter.compaction.to / kBlockSize);
      for (const std::int32_t block : group.block_tables.subspan(first, num))
        kv.forget_bounds(block);
    }
  }
}

// Scaling what the output layer reads scales the logits.
void scale_norm(float scale, NormWeights& norm) {
  for (float& w : norm.weight) w *= scale;
  for (float& b : norm.bias) b *= scale;
}

}  // namespace

Decoder::Decoder(ModelConfig config, Weights weights, std::unique_ptr<ThreadPool> pool, Isa isa,
                 KvFormats kv_formats)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      pool_(std::move(pool)),
      isa_(isa),
      limits_{.vocab_size = config_.vocab_size,
              .context_length = config_.context_length,
              .hidden_size = config_.hidden_size,
              .is_encoder = config_.is_encoder,
              .has_open_positions = !config_.learned_positions && !config_.is_encoder,
              .pooling = config_.pooling},
      kv_layout_(dunlin::kv_layout(config_, kv_formats)),
      linear_order_(linear_order(config_, weights_)) {
  scale_norm(config_.logit_scale, weights_.output_norm);
  pool_->redo_overdue_chunks();
  if (config_.num_token_types > 0) {
    constexpr std::int32_t kOnlyType = 0;
    token_type_.resize(static_cast<std::size_t>(config_.hidden_size));
    embed(*pool_, weights_.token_types.matrix, {&kOnlyType, 1}, 1.0f, token_type_.data());
  }
  for (const RopeConfig& rope : config_.ropes) {
    scratch_.ropes.emplace_back().frequencies = make_frequencies(rope, weights_.rope_factors);
  }
  // Of what 16 bits hold nothing would be gained.
  if (kv_format_info(kv_formats.k).bits <= 8) find_common_keys();
}

void Decoder::find_common_keys() {
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    LayerWeights& layer = weights_.layers[i];
    const int rope_idx = config_.layers[i].rope_idx;
    if (rope_idx == kNoRope) {
      layer.common_keys = common_keys(config_, layer, nullptr, RopeStyle::kRotateHalf);
      continue;
    }
    const auto at = static_cast<std::size_t>(rope_idx);
    layer.common_keys =
        common_keys(config_, layer, &scratch_.ropes[at].frequencies, config_.ropes[at].style);
  }
}

void Decoder::reserve(int max_tokens, int max_seqs, int max_outputs) {
  max_seqs_ = max_seqs;
  max_outputs_ = max_outputs;
  for (auto* rows : {&active_tokens_, &logits_rows_, &hidden_rows_})
    rows->reserve(static_cast<std::size_t>(max_tokens));
  const bool keep_float = isa_ == Isa::kReference || has_float_weights(weights_);
  scratch_.reserve(config_, kv_layout_, pool_->num_threads(), max_tokens, max_seqs, keep_float);
}

void Decoder::check(const ForwardBatch& batch, const ForwardOutputs& outputs) const {
  const auto num_seqs = static_cast<std::size_t>(batch.num_seqs());
  DUNLIN_CHECK(batch.num_tokens() <= scratch_.max_tokens, "more tokens than reserved");
  DUNLIN_CHECK(batch.num_seqs() <= max_seqs_, "more sequences than reserved");
  DUNLIN_CHECK(batch.num_outputs() <= max_outputs_, "more logit rows than reserved");
  DUNLIN_CHECK(batch.positions.size() == batch.token_ids.size(), "one position a token");
  DUNLIN_CHECK(batch.query_start_loc.size() == num_seqs + 1, "num_seqs + 1 starts");
  DUNLIN_CHECK(batch.groups.size() == kv_layout_.groups.size(), "one table a KV group");
  const ForwardBatch::Kept& kept = batch.kept;
  DUNLIN_CHECK(batch.page_budgets.empty() || batch.page_budgets.size() == batch.token_ids.size(),
               "how much each token reads");
  DUNLIN_CHECK(kept.is_empty() || (kept.first.size() == batch.token_ids.size() &&
                                   kept.sink_positions.size() == batch.token_ids.size() &&
                                   kept.num_sinks.size() == num_seqs),
               "what each token sees");
  DUNLIN_CHECK(
      batch.slot_positions.empty() || batch.slot_positions.size() == batch.token_ids.size(),
      "one slot a token");
  DUNLIN_CHECK(batch.slot_lens.empty() == batch.slot_positions.empty() &&
                   (batch.slot_lens.empty() || batch.slot_lens.size() == num_seqs),
               "as many slots a sequence");
  for (const ForwardBatch::Group& group : batch.groups) {
    DUNLIN_CHECK(group.slot_mapping.size() == batch.token_ids.size(), "one slot a token");
    DUNLIN_CHECK(
        group.block_tables.size() == num_seqs * static_cast<std::size_t>(group.max_blocks_per_seq),
        "one table a sequence");
  }
  DUNLIN_CHECK(outputs.logits.size() >= static_cast<std::size_t>(batch.num_outputs()) *
                                            static_cast<std::size_t>(config_.vocab_size),
               "room for the logits");
  DUNLIN_CHECK(outputs.hidden.size() >= static_cast<std::size_t>(batch.num_hidden()) *
                                            static_cast<std::size_t>(config_.hidden_size),
               "room for the hidden states");
  DUNLIN_CHECK(batch.causal != config_.is_encoder, "encoders see all of a text, others don't");
  DUNLIN_CHECK(!config_.is_encoder || batch.num_outputs() == 0, "an encoder has no logits");
  for (std::size_t seq = 0; config_.is_encoder && seq < num_seqs; ++seq) {
    DUNLIN_CHECK(batch.query_start_loc[seq + 1] - batch.query_start_loc[seq] == batch.seq_lens[seq],
                 "an encoder's text runs in one step");
  }
}

void Decoder::find_active_tokens(const ForwardBatch& batch) {
  active_tokens_.clear();
  logits_rows_.clear();
  hidden_rows_.clear();
  std::set_union(batch.logits_indices.begin(), batch.logits_indices.end(),
                 batch.hidden_indices.begin(), batch.hidden_indices.end(),
                 std::back_inserter(active_tokens_));
  if (batch.num_hidden() == 0) return;
  std::size_t next_logits = 0, next_hidden = 0;
  for (std::size_t row = 0; row < active_tokens_.size(); ++row) {
    const auto take = [&](std::span<const std::int32_t> indices, std::size_t& next,
                          std::vector<std::int32_t>& rows) {
      if (next == indices.size() || indices[next] != active_tokens_[row]) return;
      rows.push_back(static_cast<std::int32_t>(row));
      ++next;
    };
    take(batch.logits_indices, next_logits, logits_rows_);
    take(batch.hidden_indices, next_hidden, hidden_rows_);
  }
}

void Decoder::embed_tokens(Step& step) {
  embed(step.pool, weights_.token_embedding.matrix, step.batch.token_ids, config_.embedding_scale,
        scratch_.residual.as<float>());
  if (config_.learned_positions) {
    for (const std::int32_t position : step.batch.positions)
      DUNLIN_CHECK(position < config_.context_length, "no position for a token");
    embed(step.pool, weights_.position_embedding.matrix, step.batch.positions, 1.0f,
          scratch_.delta.as<float>());
    if (!token_type_.empty()) {
      const std::int64_t n = config_.hidden_size;
      for_rows(step.pool, step.batch.num_tokens(), n, [&](std::int64_t token) {
        add(token_type_.data(), n, scratch_.delta.as<float>() + token * n);
      });
    }
  }
  for (RopeTable& rope : scratch_.ropes) {
    rope_table(step.pool, rope.frequencies, step.batch.positions, rope.cos.as<float>(),
               rope.sin.as<float>());
    if (step.batch.kept.is_empty()) continue;
    rope_table(step.pool, rope.frequencies, step.batch.kept.sink_positions,
               rope.sink_cos.as<float>(), rope.sink_sin.as<float>());
  }
}

void Decoder::add_and_norm(Step& step, float* delta, const NormWeights& delta_norm,
                           const NormWeights& next, std::int64_t num_rows) {
  AddNorm op;
  op.residual = scratch_.residual.as<float>();
  op.delta = delta;
  op.delta_norm = step.norm(delta_norm);
  op.delta_scale = config_.residual_scale;
  op.norm = step.norm(next);
  op.n = config_.hidden_size;
  op.normed = config_.norms_residual ? op.residual : scratch_.delta.as<float>();
  add_norm(step.pool, step.isa, op, num_rows, &scratch_.acts);
}

const float* Decoder::normed() const {
  return (config_.norms_residual ? scratch_.residual : scratch_.delta).as<float>();
}

void Decoder::copy_hidden(Step& step, std::span<float> hidden) {
  const std::int64_t n = config_.hidden_size;
  // The last norm's weights hold the logits' scale.
  const float scale = 1.0f / config_.logit_scale;
  for_rows(step.pool, step.batch.num_hidden(), n, [&](std::int64_t i) {
    const float* from = normed() + hidden_rows_[static_cast<std::size_t>(i)] * n;
    for (std::int64_t d = 0; d < n; ++d)
      hidden[static_cast<std::size_t>(i * n + d)] = scale * from[d];
  });
}

void Decoder::compute_logits(Step& step, const ForwardOutputs& outputs) {
  const auto [logits, maxima, hidden] = outputs;
  const LinearWeights& head = config_.tied_head ? weights_.token_embedding : weights_.head;
  const int num_outputs = step.batch.num_outputs();
  const bool has_softcap = config_.logit_softcap != 0.0f;
  GemmTask task{&head.matrix, nullptr, logits.data(), config_.vocab_size};
  if (!maxima.empty() && !has_softcap) task.maxima = maxima.data();
  step.linear({&task, 1}, num_outputs, logits_rows_.empty() ? nullptr : logits_rows_.data());
  if (!has_softcap) return;
  for_rows(step.pool, num_outputs, config_.vocab_size, [&](std::int64_t row) {
    softcap(step.isa, config_.logit_softcap, config_.vocab_size,
            logits.data() + row * config_.vocab_size);
    const auto vocab_size = static_cast<std::size_t>(config_.vocab_size);
    if (maxima.empty()) return;
    row_maxima(logits.data() + row * config_.vocab_size, vocab_size,
               maxima.data() + row * static_cast<std::int64_t>(maxima_size(vocab_size)));
  });
}

void Decoder::forward(const ForwardBatch& batch, KvStorage& kv, const ForwardOutputs& outputs) {
  check(batch, outputs);
  ++counters_.num_forwards;
  if (batch.num_tokens() == 0) return;
  find_active_tokens(batch);
  for (const ForwardBatch::Group& group : batch.groups) kv.note_writes(group.slot_mapping);
  note_compactions(batch, kv);
  Step step{*pool_, isa_, config_, batch, kv, scratch_, linear_order_, active_tokens_};
  ActiveRows rows{batch.num_tokens()};
  float* delta = scratch_.delta.as<float>();
  embed_tokens(step);
  add_and_norm(step, config_.learned_positions ? delta : nullptr, {}, weights_.layers[0].attn_norm,
               rows.count);
  for (int i = 0; i < config_.num_layers(); ++i) {
    const bool is_last = i + 1 == config_.num_layers();
    const LayerWeights& layer = weights_.layers[static_cast<std::size_t>(i)];
    (config_.is_latent() ? attend_latent : attend)(step, layer, i);
    if (is_last && active_tokens_.size() < batch.token_ids.size())
      rows = {std::ssize(active_tokens_), active_tokens_.data()};
    if (rows.count == 0) break;
    if (config_.parallel) {
      if (config_.parallel_norms)
        add_and_norm(step, nullptr, {}, layer.ffn_norm, batch.num_tokens());
      parallel_mlp(step, layer, rows);
    } else {
      project_attention(step, layer, rows);
      add_and_norm(step, delta, layer.post_attn_norm, layer.ffn_norm, rows.count);
      if (config_.layers[static_cast<std::size_t>(i)].has_experts)
        mix_experts(step, layer.moe, rows);
      else
        mlp(step, layer, rows);
    }
    const NormWeights& next =
        is_last ? weights_.output_norm : weights_.layers[static_cast<std::size_t>(i) + 1].attn_norm;
    add_and_norm(step, delta, layer.post_ffn_norm, next, rows.count);
  }
  compute_logits(step, outputs);
  copy_hidden(step, outputs.hidden);
  counters_.weight_bytes_read += step.weight_bytes;
}

}  // namespace dunlin
