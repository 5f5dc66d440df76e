// Counts how deep printing, comparing and hashing are inside nested values.
#pragma once

#include "text/jinja/budget.h"

namespace dunlin::jinja {

class Nesting {
 public:
  explicit Nesting(Budget& budget) : budget_(budget) {
    if (budget.value_depth >= budget.limits().value_depth) {
      limit_fault("a value of the template is nested too deeply");
    }
    ++budget_.value_depth;
  }
  ~Nesting() { --budget_.value_depth; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Budget& budget_;
};

}  // namespace dunlin::jinja
