// Helpers that filters, methods and globals share for lists and dicts.
#pragma once

#include <vector>

#include "text/jinja/runtime.h"

namespace dunlin::jinja {

// Sorts `items` by `keys` (one an item), stable, as Python's sorted(); `reverse` keeps equal items
// in order. The two may be the same vector.
void sort_values(Runtime& runtime, std::vector<Value>& items, const std::vector<Value>& keys,
                 bool reverse);

// What dict(...) and dict.update(...) do with args.pos[from, ...) and all named arguments.
void fill_dict(Runtime& runtime, Dict& dict, const Args& args, std::size_t from);

// Lower case where the value is a string: how filters compare unless told otherwise.
Value ignore_case(Runtime& runtime, const Value& value);

// A generator of items that are there already.
Value generator_of(Runtime& runtime, std::vector<Value> items);

}  // namespace dunlin::jinja
