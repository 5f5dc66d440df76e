// Classes of characters as Hugging Face's tokenizers draw them: Rust's standard library follows
// Unicode, but some of their tables are older than ours.
#pragma once

#include "text/code_point_set.h"

namespace dunlin::hf {

const CodePointSet& spaces();            // White_Space
const CodePointSet& punctuation();       // P*, and ASCII's symbols
const CodePointSet& numbers();           // N*
const CodePointSet& word_characters();   // \w of Rust's regex: Alphabetic, M, Nd, Pc, joiners
const CodePointSet& marks();             // M* as StripAccents removes them
const CodePointSet& nonspacing_marks();  // Mn as BertNormalizer removes them
const CodePointSet& bert_removed();      // control and format characters
const CodePointSet& bert_ideographs();   // the CJK blocks that BERT sets apart

// Their NFKC and NFKD leave it alone, since it got its decomposition in a later Unicode.
bool is_newer_decomposition(char32_t c);
// Their normal forms take it for a starter, since it became a mark in a later Unicode.
bool is_newer_mark(char32_t c);

}  // namespace dunlin::hf
