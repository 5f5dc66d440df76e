#include "net/http_streams.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "net/net_libraries.h"

namespace dunlin {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Text that libcurl writes its reasons to.
using ErrorText = std::array<char, CURL_ERROR_SIZE>;

struct Transfer {
  const CurlLibrary* library = nullptr;
  CURL* curl = nullptr;
  curl_slist* headers = nullptr;
  HttpRequest request;
  HttpHandler* handler = nullptr;
  ErrorText error{};
  bool hung_up = false;

  ~Transfer() {
    if (curl != nullptr) library->easy_cleanup(curl);
    library->slist_free_all(headers);
  }
  int status() const {
    long code = 0;
    library->easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    return static_cast<int>(code);
  }
};

std::size_t on_data(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.handler->on_bytes(transfer.status(), {data, size * count})) return size * count;
  transfer.hung_up = true;
  return size * count + 1;  // anything but the size ends the transfer
}

HttpEndKind end_kind(CURLcode code) {
  switch (code) {
    case CURLE_OK: return HttpEndKind::kDone;
    case CURLE_OPERATION_TIMEDOUT: return HttpEndKind::kTimeout;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION: return HttpEndKind::kConnect;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: return HttpEndKind::kClosed;
    default: return HttpEndKind::kProtocol;
  }
}

// A proxy that the environment names is not for this machine.
bool is_loopback(std::string_view url) {
  const std::size_t host = url.find("://");
  if (host == url.npos) return false;
  const std::string_view rest = url.substr(host + 3);
  return rest.starts_with("127.") || rest.starts_with("localhost") || rest.starts_with("[::1]");
}

class CurlStreams final : public HttpStreams {
 public:
  CurlStreams(const CurlLibrary& library, std::size_t max_connections)
      : library_(library), multi_(library.multi_init()), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    const auto set = [&](CURLMoption option, auto value) {
      library_.multi_setopt(multi_, option, value);
    };
    set(CURLMOPT_SOCKETFUNCTION, &CurlStreams::on_socket);
    set(CURLMOPT_SOCKETDATA, this);
    set(CURLMOPT_TIMERFUNCTION, &CurlStreams::on_timer);
    set(CURLMOPT_TIMERDATA, this);
    set(CURLMOPT_MAXCONNECTS, static_cast<long>(max_connections));
    set(CURLMOPT_PIPELINING, long{CURLPIPE_NOTHING});  // a connection for each request
  }

  ~CurlStreams() override {
    CurlStreams::drop_all();
    library_.multi_cleanup(multi_);
    ::close(epoll_);
  }

  bool is_usable() const { return multi_ != nullptr && epoll_ >= 0; }

  Outcome start(HttpRequest request, HttpHandler& handler) override {
    auto transfer = std::make_unique<Transfer>();
    transfer->library = &library_;
    transfer->curl = library_.easy_init();
    transfer->request = std::move(request);
    transfer->handler = &handler;
    if (transfer->curl == nullptr) return fail(StatusCode::kResourceExhausted, "no memory");
    if (!is_http(transfer->request.url))
      return invalid(fmt::format("'{}' is no http:// or https:// URL", transfer->request.url));
    set_options(*transfer);
    CURL* const curl = transfer->curl;
    transfers_.emplace(curl, std::move(transfer));
    library_.multi_add_handle(multi_, curl);
    return {};
  }

  void poll(milliseconds timeout, int wake_fd) override {
    watch_wake_fd(wake_fd);
    if (timer_) {
      const auto left = std::chrono::ceil<milliseconds>(*timer_ - Clock::now());
      timeout = std::clamp(left, milliseconds(0), timeout);
    }
    std::array<epoll_event, 256> events;
    const int n = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                               static_cast<int>(timeout.count()));
    for (int i = 0; i < n; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.fd == wake_fd_) continue;
      int flags = 0;
      if ((event.events & (EPOLLIN | EPOLLHUP)) != 0) flags |= CURL_CSELECT_IN;
      if ((event.events & EPOLLOUT) != 0) flags |= CURL_CSELECT_OUT;
      if ((event.events & EPOLLERR) != 0) flags |= CURL_CSELECT_ERR;
      act(event.data.fd, flags);
    }
    if (timer_ && Clock::now() >= *timer_) {
      timer_.reset();
      act(CURL_SOCKET_TIMEOUT, 0);
    }
    take_finished();
  }

  void drop_all() override {
    for (auto& [curl, transfer] : transfers_) library_.multi_remove_handle(multi_, curl);
    transfers_.clear();
  }

  std::size_t num_running() const override { return transfers_.size(); }

 private:
  static bool is_http(std::string_view url) {
    return url.starts_with("http://") || url.starts_with("https://");
  }

  void set_options(Transfer& transfer) {
    const HttpRequest& request = transfer.request;
    const auto set = [&](CURLoption option, auto value) {
      library_.easy_setopt(transfer.curl, option, value);
    };
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
    set(CURLOPT_USERAGENT, "dunlin");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_ERRORBUFFER, transfer.error.data());
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
    set(CURLOPT_WRITEFUNCTION, &on_data);
    set(CURLOPT_WRITEDATA, &transfer);
    if (is_loopback(request.url)) set(CURLOPT_PROXY, "");
    // OpenSSL's own variable, which libcurl passes over.
    if (const char* authorities = std::getenv("SSL_CERT_FILE")) set(CURLOPT_CAINFO, authorities);
    if (!request.bearer_token.empty()) {
      set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
      set(CURLOPT_XOAUTH2_BEARER, request.bearer_token.c_str());
    }
    if (request.body.empty()) return;
    // "Expect:" so that the body goes out with the head.
    for (const char* header : {"Content-Type: application/json", "Expect:"})
      transfer.headers = library_.slist_append(transfer.headers, header);
    set(CURLOPT_HTTPHEADER, transfer.headers);
    set(CURLOPT_POSTFIELDS, request.body.c_str());
    set(CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
  }

  static int on_socket(CURL*, curl_socket_t socket, int what, void* user, void* known) {
    auto& self = *static_cast<CurlStreams*>(user);
    if (what == CURL_POLL_REMOVE) {
      ::epoll_ctl(self.epoll_, EPOLL_CTL_DEL, socket, nullptr);  // it may be closed already
      return 0;
    }
    epoll_event event{};
    event.data.fd = socket;
    if (what != CURL_POLL_OUT) event.events |= EPOLLIN;
    if (what != CURL_POLL_IN) event.events |= EPOLLOUT;
    const int first = known == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (::epoll_ctl(self.epoll_, first, socket, &event) != 0)
      ::epoll_ctl(self.epoll_, errno == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
    return 0;
  }

  static int on_timer(CURLM*, long timeout_ms, void* user) {
    auto& self = *static_cast<CurlStreams*>(user);
    self.timer_.reset();
    if (timeout_ms >= 0) self.timer_ = Clock::now() + milliseconds(timeout_ms);
    return 0;
  }

  void act(curl_socket_t socket, int flags) {
    int running = 0;
    library_.multi_socket_action(multi_, socket, flags, &running);
  }

  void take_finished() {
    int left = 0;
    while (const CURLMsg* message = library_.multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* const curl = message->easy_handle;  // `message` ends with the handle's removal
      const auto found = transfers_.find(curl);
      const std::unique_ptr<Transfer> transfer = std::move(found->second);
      transfers_.erase(found);
      HttpEnd end{end_kind(code), transfer->status(), {}};
      if (transfer->hung_up) end.kind = HttpEndKind::kHungUp;
      if (end.kind != HttpEndKind::kDone)
        end.message =
            transfer->error[0] != '\0' ? transfer->error.data() : library_.easy_strerror(code);
      library_.multi_remove_handle(multi_, curl);
      transfer->handler->on_end(end);
    }
  }

  void watch_wake_fd(int fd) {
    if (fd == wake_fd_) return;
    if (wake_fd_ >= 0) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, wake_fd_, nullptr);
    wake_fd_ = fd;
    epoll_event event{};
    event.data.fd = fd;
    event.events = EPOLLIN;
    if (fd >= 0) ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  const CurlLibrary& library_;
  CURLM* multi_;
  int epoll_;
  int wake_fd_ = -1;
  std::optional<Clock::time_point> timer_;
  std::unordered_map<CURL*, std::unique_ptr<Transfer>> transfers_;
};

}  // namespace

Result<std::unique_ptr<HttpStreams>> HttpStreams::create(std::size_t max_connections) {
  DUNLIN_ASSIGN(library, curl_library());
  auto streams = std::make_unique<CurlStreams>(*library, max_connections);
  if (!streams->is_usable())
    return fail(StatusCode::kResourceExhausted, "no memory or descriptors for connections");
  return streams;
}

}  // namespace dunlin
