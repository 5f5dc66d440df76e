// Reads the answer to one request as it comes and notes when each piece of it came.
#pragma once

#include <string>
#include <string_view>

#include "loadgen/request_record.h"
#include "loadgen/sse_parser.h"

namespace dunlin::loadgen {

class AnswerReader {
 public:
  explicit AnswerReader(RequestRecord& record) : record_(record) {}

  // `now_s`: since the request was sent. False where nothing more needs to be read, since the
  // answer is wrong.
  bool push(int http_status, std::string_view bytes, double now_s);
  // The whole answer has come: fills what failed, if the stream did not end as it should.
  void finish(int http_status);

 private:
  void take_event(std::string_view data, double now_s);
  void note_piece(double now_s);
  void fail(Failure failure, std::string message);

  RequestRecord& record_;
  SseParser parser_;
  std::string head_;      // the first bytes, to quote where they are not what they should be
  bool is_done_ = false;  // [DONE], or the reason of the end, has come
  bool has_event_ = false;
};

}  // namespace dunlin::loadgen
