// Reads server-sent events from pieces of any size (WHATWG HTML, section 9.2.6): the data of each
// event; names, ids, retry times and comments are passed over.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace dunlin::loadgen {

class SseParser {
 public:
  // The most bytes of a line or of an event's data.
  static constexpr std::size_t kMaxBytes = 4 << 20;

  // Gives the data of each event that `bytes` completes. False where a limit is passed; nothing is
  // read any more then.
  bool push(std::string_view bytes, FunctionRef<void(std::string_view data)> on_event);

 private:
  bool take_line(std::string_view line, FunctionRef<void(std::string_view data)> on_event);

  std::string line_;  // of which the end has not come
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;  // a \n now belongs to the \r before it
  bool is_broken_ = false;
};

}  // namespace dunlin::loadgen
