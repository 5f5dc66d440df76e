// A TCP client of bytes for tests of the server: says exactly what it is told, reads with a
// deadline.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

namespace dunlin {

class RawClient {
 public:
  explicit RawClient(int port, int receive_buffer = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer > 0)
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_open_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool is_open() const { return is_open_; }

  // False where the server has closed before all was sent.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  // Reads until `stop(all so far)`, the end of the connection, or the deadline; gives all so far.
  template <typename Stop>
  const std::string& read_until(Stop stop, int timeout_ms = 5000) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (!stop(received_) && !at_end_) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      pollfd descriptor{fd_, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&descriptor, 1, static_cast<int>(left.count())) <= 0) break;
      char buffer[65536];
      const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) {
        at_end_ = true;
      } else {
        received_.append(buffer, static_cast<std::size_t>(n));
      }
    }
    return received_;
  }
  const std::string& read_until_text(std::string_view text, int timeout_ms = 5000) {
    return read_until(
        [text](const std::string& all) { return all.find(text) != std::string::npos; }, timeout_ms);
  }
  const std::string& read_to_end(int timeout_ms = 5000) {
    return read_until([](const std::string&) { return false; }, timeout_ms);
  }
  // One whole answer with a Content-Length (or none); what is behind it stays for the next call.
  std::string read_answer(bool has_body = true, int timeout_ms = 5000) {
    std::size_t size = 0;
    read_until(
        [&](const std::string& all) {
          const auto head = all.find("\r\n\r\n");
          if (head == std::string::npos) return false;
          size = head + 4;
          const auto field = all.find("Content-Length: ");
          if (has_body && field < head) size += std::stoul(all.substr(field + 16));
          return all.size() >= size;
        },
        timeout_ms);
    std::string answer = received_.substr(0, size);
    received_.erase(0, size);
    return answer;
  }

  bool at_end() const { return at_end_; }
  void shutdown_send() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  // Closes with a reset instead of a goodbye.
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }

 private:
  int fd_ = -1;
  bool is_open_ = false;
  bool at_end_ = false;
  std::string received_;
};

}  // namespace dunlin
