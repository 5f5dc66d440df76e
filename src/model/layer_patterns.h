// Which layers of a model see a window only.
#pragma once

#include "model/config.h"
#include "model/hf_import.h"
#include "model/hparams.h"

namespace dunlin {

// Sets the window of each layer from attention.sliding_window (0 or missing: none) and
// attention.sliding_window_pattern: one number, a period whose last layer sees all, or an array
// with 1 for each layer that sees a window. Without the pattern: period `default_period`, or every
// layer where that is 0.
void set_windows(Hparams& hparams, ModelConfig& config, int default_period);

// The pattern from config.json's layer_types, where it is not the default one.
void import_window_pattern(HfImport& import, int default_period);

}  // namespace dunlin
