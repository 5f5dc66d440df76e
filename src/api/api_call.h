// One request being answered, free of sockets: started from a body, advanced whenever tokens have
// come, read as bytes for the wire.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/api_error.h"
#include "api/call_stats.h"
#include "frontend/session.h"

namespace dunlin {

// Bounds the size of one event, and so what a slow reader's connection holds.
inline constexpr int kMaxTokensPerAdvance = 512;

// What one advance() brought.
struct CallProgress {
  std::string bytes;  // streaming: whole events; else the body, once done
  int num_new_tokens = 0;
  bool has_more = false;  // kMaxTokensPerAdvance was reached: advance again
  bool done = false;
  std::optional<ApiError> error;  // the answer is this error, not `bytes`; only without streaming
};

// Who asks; from the connection, not from the body.
struct CallOrigin {
  int tenant = 0;  // EngineRequest::tenant
};

class ApiCall {
 public:
  virtual ~ApiCall() = default;  // cancels what is still running

  virtual bool is_streaming() const = 0;
  // `notify` comes from the engine thread when there is something to advance over; be quick.
  virtual void on_ready(std::function<void()> notify) = 0;
  // Takes what is there, without waiting, and joins what belongs to one choice into one
  // event: a reader who is slow gets fewer, larger events. One thread at a time.
  virtual CallProgress advance() = 0;
  // Any thread; advance() then comes to its end soon.
  virtual void cancel() = 0;

  // As of the last advance(), in that one's thread. Without choices for a call that generates
  // nothing.
  virtual CallStats stats() const { return {}; }
  virtual int num_choices() const = 0;
  virtual int max_tokens() const = 0;  // as asked; 0: to the end of the context
};

// Parses, tokenises and submits: slow for large bodies, so not for an I/O thread. Thread-safe.
// `session` must outlive the call.
ApiResult<std::unique_ptr<ApiCall>> start_chat(Session& session, std::string_view body,
                                               const CallOrigin& origin = {});
ApiResult<std::unique_ptr<ApiCall>> start_completion(Session& session, std::string_view body,
                                                     const CallOrigin& origin = {});
ApiResult<std::unique_ptr<ApiCall>> start_embedding(Session& session, std::string_view body,
                                                    const CallOrigin& origin = {});
// Never waits itself. The answer tells how many blocks the prefix cache forgot.
ApiResult<std::unique_ptr<ApiCall>> start_reset_prefix_cache(Session& session);

}  // namespace dunlin
