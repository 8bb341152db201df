// Both ends of an endpoint's traffic: replicas that answer, and clients that never repeat a request.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "controller/runtime/endpoints.h"
#include "os/fd.h"

namespace carve::controller {

inline sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Listens on a free port of 127.0.0.1.
inline os::Fd listen_anywhere(uint16_t& port) {
  os::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 || listen(fd.get(), 128) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    std::abort();
  port = ntohs(address.sin_port);
  return fd;
}

inline uint16_t free_port() {
  uint16_t port = 0;
  const os::Fd fd = listen_anywhere(port);
  return port;
}

inline void send_all(int fd, std::string_view text) {
  (void)send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

// Reads until the text ends with `end`. Returns an empty string if the connection ends first.
inline std::string read_until(int fd, std::string_view end) {
  std::string text;
  char bytes[2048];
  while (!text.ends_with(end)) {
    const ssize_t count = recv(fd, bytes, sizeof bytes, 0);
    if (count <= 0) return "";
    text.append(bytes, static_cast<size_t>(count));
  }
  return text;
}

// A replica that answers each request with its name. It answers "GET /stream" in two parts; the second one is
// sent when the test ends the stream.
class Replica {
 public:
  explicit Replica(std::string name) : name_(std::move(name)), listener_(listen_anywhere(port_)) {
    thread_ = std::thread([this] {
      for (int fd; (fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) serve(os::Fd(fd));
    });
  }
  ~Replica() {
    end_stream();
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    for (std::thread& stream : streams_) stream.join();
  }
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  DesiredServer desired() const { return {.replica = name_, .port = port_}; }
  void end_stream() {
    ended_ = true;
    ended_.notify_all();
  }

 private:
  void serve(os::Fd fd) {
    const std::string request = read_until(fd.get(), "\r\n\r\n");
    if (request.starts_with("GET /stream")) {
      streams_.emplace_back([this, fd = std::move(fd)] {
        send_all(fd.get(), "HTTP/1.1 200 OK\r\n\r\nbegin\n");
        ended_.wait(false);
        send_all(fd.get(), "end\n");
      });
    } else if (!request.empty()) {
      // The replica closes the connection after this request without announcing it, like a program that is
      // being stopped.
      send_all(fd.get(),
               fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}\n", name_.size() + 1, name_));
    }
  }

  std::string name_;
  uint16_t port_ = 0;
  os::Fd listener_;
  std::atomic<bool> ended_ = false;
  std::vector<std::thread> streams_;
  std::thread thread_;
};

inline os::Fd connect_to_port(uint16_t port) {
  os::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return os::Fd();
  return fd;
}

inline constexpr const char* post_request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";

// Sends one request on a new connection. Returns the response, or an empty string if there is none.
inline std::string response_of(uint16_t port) {
  const os::Fd fd = connect_to_port(port);
  send_all(fd.get(), "POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  std::string text;
  char bytes[2048];
  for (ssize_t count; (count = recv(fd.get(), bytes, sizeof bytes, 0)) > 0;)
    text.append(bytes, static_cast<size_t>(count));
  return text;
}

// Eight clients that keep their connections open, send as fast as they can, and never repeat a request.
class Clients {
 public:
  explicit Clients(uint16_t port) {
    for (int i = 0; i < 8; ++i) threads_.emplace_back([this, port] { work(port); });
  }
  ~Clients() { stop(); }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  void wait_for_requests(uint64_t count) const {
    for (uint64_t now = done; now < count && lost == 0; now = done) done.wait(now);
  }
  void stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  std::string first_loss() {
    const std::lock_guard lock(mutex_);
    return first_loss_;
  }

  std::atomic<uint64_t> done = 0;  // Requests with a response from a replica.
  std::atomic<uint64_t> lost = 0;

 private:
  void work(uint16_t port) {
    os::Fd fd;
    while (!stopping_) {
      if (!fd) fd = connect_to_port(port);
      send_all(fd.get(), post_request);
      const std::string response = read_until(fd.get(), "\n");
      const size_t end = response.find("\r\n\r\n");
      if (response.starts_with("HTTP/1.1 200") && end != std::string::npos) {
        ++done;
        done.notify_all();
        if (response.find("onnection: close") < end) fd.reset();
        continue;
      }
      const std::lock_guard lock(mutex_);
      if (lost++ == 0) first_loss_ = response.empty() ? "no response" : response;
      done.notify_all();
      fd.reset();
    }
  }

  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::string first_loss_;
  std::vector<std::thread> threads_;
};

}  // namespace carve::controller
