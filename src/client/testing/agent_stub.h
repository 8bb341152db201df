// An agent stub for tests of its clients: a thread behind a unix socket that sends prepared responses.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace carve::client {

class AgentStub {
 public:
  // `answers` maps "METHOD PATH" to the complete bytes of the response; other requests get 404. An empty
  // response closes the connection. The first `unanswered` requests, of any kind, get no response.
  explicit AgentStub(std::map<std::string, std::string> answers, unsigned unanswered = 0)
      : answers_(std::move(answers)), unanswered_(unanswered) {
    char name[] = "/tmp/carve-stub-XXXXXX";
    folder_ = mkdtemp(name);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::strncpy(address.sun_path, socket().c_str(), sizeof address.sun_path - 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 8) != 0)
      std::abort();
    thread_ = std::thread([this] { serve(); });
  }
  ~AgentStub() {
    shutdown(listener_, SHUT_RDWR);  // Ends accept().
    thread_.join();
    close(listener_);
    std::filesystem::remove_all(folder_);
  }
  AgentStub(const AgentStub&) = delete;
  AgentStub& operator=(const AgentStub&) = delete;

  std::string socket() const { return folder_ + "/s"; }
  // Returns the requests so far, each "METHOD PATH BODY".
  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    for (int fd; (fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; close(fd)) answer(fd);
  }

  // Reads one request with its body, whose size is in Content-Length.
  void answer(int fd) {
    std::string request;
    char bytes[4096];
    size_t end = std::string::npos, length = 0;
    while (end == std::string::npos || request.size() < end + 4 + length) {
      const ssize_t n = read(fd, bytes, sizeof bytes);
      if (n <= 0) return;
      request.append(bytes, static_cast<size_t>(n));
      end = request.find("\r\n\r\n");
      const size_t header = request.find("Content-Length: ");
      if (header < end) length = std::strtoul(request.c_str() + header + 16, nullptr, 10);
    }
    const std::string line = request.substr(0, request.find(" HTTP/"));
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(line + " " + request.substr(end + 4));
      if (requests_.size() <= unanswered_) return;
    }
    const auto known = answers_.find(line);
    const std::string out =
        known != answers_.end() ? known->second : "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    for (size_t sent = 0; sent < out.size();) {
      const ssize_t n = send(fd, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<size_t>(n);
    }
  }

  std::map<std::string, std::string> answers_;
  const unsigned unanswered_;
  std::string folder_;
  int listener_ = -1;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

// Returns the bytes of a response with a JSON body.
inline std::string json_answer(unsigned status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) +
         " X\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

}  // namespace carve::client
