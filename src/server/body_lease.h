// A request's share of the memory that bodies may take. I/O thread only.
#pragma once

#include <cstddef>

#include "server/server_context.h"

namespace dunlin {

// Body bytes that count against the server's limit for as long as this lives.
class BodyLease {
 public:
  explicit BodyLease(ServerContext& context) : context_(context) {}
  ~BodyLease() { release(); }
  BodyLease(const BodyLease&) = delete;
  BodyLease& operator=(const BodyLease&) = delete;

  bool take(std::size_t bytes) {
    if (context_.held_body_bytes + bytes > context_.config.max_held_body_bytes) return false;
    context_.held_body_bytes += bytes;
    bytes_ += bytes;
    return true;
  }
  void release() {
    context_.held_body_bytes -= bytes_;
    bytes_ = 0;
  }

 private:
  ServerContext& context_;
  std::size_t bytes_ = 0;
};

}  // namespace dunlin
