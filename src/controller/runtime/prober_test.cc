#include "controller/runtime/prober.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "os/clock.h"
#include "os/fd.h"

namespace carve::controller {
namespace {

// A socket that listens on a free port of 127.0.0.1.
struct Listener {
  Listener() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    bind(socket.get(), reinterpret_cast<sockaddr*>(&at), size);
    listen(socket.get(), 16);
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size);
    port = ntohs(at.sin_port);
  }
  os::Fd socket;
  uint32_t port = 0;
};

// A listener that answers each connection with fixed bytes and then closes it or leaves it open.
class Answering {
 public:
  Answering(std::string answer, bool closes) {
    thread_ = std::thread([this, answer = std::move(answer), closes] {
      std::vector<os::Fd> open;
      for (;;) {
        os::Fd fd(accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!fd) return;
        send(fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
        if (!closes) open.push_back(std::move(fd));
      }
    });
  }
  ~Answering() {
    shutdown(listener_.socket.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  Listener listener_;
  std::thread thread_;

 public:
  const uint32_t port = listener_.port;
};

// A process that does not listen on any port.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ == 0)
      for (;;) pause();
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  os::ProcessId id() const { return os::stat_of(pid_)->id; }

 private:
  pid_t pid_;
};

std::optional<ProbeResult> probed(uint32_t port, const std::string& path, const os::ProcessId& supervisor) {
  Prober prober;
  const ProbeTarget target{.port = port,
                           .path = path,
                           .period_ns = 50 * os::millisecond,
                           .timeout_ns = 300 * os::millisecond,
                           .supervisor = supervisor};
  for (int i = 0; i < 3000; ++i) {
    if (const auto got = prober.probe("a", target)) return got;
    usleep(10'000);
  }
  return std::nullopt;
}

std::optional<bool> result(uint32_t port, const std::string& path) {
  const auto seen = probed(port, path, os::stat_of(getpid())->id);
  return seen ? std::optional(seen->is_success) : std::nullopt;
}

// Probes once: the next probe is due in an hour.
ProbeTarget one_probe_of(uint32_t port) {
  return {.port = port,
          .path = "/healthz",
          .period_ns = 3600 * os::second,
          .timeout_ns = 600 * os::second,
          .supervisor = os::stat_of(getpid())->id};
}

TEST(Prober, fails_and_names_the_listener_if_another_program_listens) {
  const Sleeper replica;  // Created before the listener, which it would otherwise inherit.
  const Answering server("HTTP/1.1 200 OK\r\n\r\n", false);
  for (const char* path : {"", "/healthz"}) {
    const auto seen = probed(server.port, path, replica.id());
    ASSERT_TRUE(seen);
    EXPECT_FALSE(seen->is_success);
    EXPECT_NE(seen->foreign.find("is used by another program of uid"), std::string::npos) << seen->foreign;
  }
}

TEST(Prober, accepts_a_listener_that_is_a_descendant_of_the_program) {
  const Answering server("", false);
  EXPECT_EQ(result(server.port, ""), true);
  os::ProcessId parent = os::stat_of(getppid())->id;
  const auto seen = probed(server.port, "", parent);
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->is_success) << seen->foreign;
}

TEST(Prober, needs_only_a_connection_if_there_is_no_path) {
  const Answering server("", true);
  EXPECT_EQ(result(server.port, ""), true);
}

TEST(Prober, fails_on_a_closed_port) {
  uint32_t port = 0;
  {
    const Answering server("", true);
    port = server.port;
  }
  EXPECT_EQ(result(port, ""), false);
}

TEST(Prober, succeeds_with_a_get_only_on_2xx_and_3xx) {
  EXPECT_EQ(result(Answering("HTTP/1.1 204 No Content\r\n\r\n", false).port, "/healthz"), true);
  EXPECT_EQ(result(Answering("HTTP/1.0 302 Found\r\n", false).port, "/healthz"), true);
  EXPECT_EQ(result(Answering("HTTP/1.1 503 no\r\n\r\n", false).port, "/healthz"), false);
}

TEST(Prober, reads_the_whole_response_and_does_not_reset_the_connection) {
  const Listener listener;
  Prober prober;
  const ProbeTarget target = one_probe_of(listener.port);
  EXPECT_EQ(prober.probe("a", target), std::nullopt);
  const os::Fd fd(accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(fd);
  char request[1024];
  ASSERT_GT(recv(fd.get(), request, sizeof request, 0), 0);
  const std::string head = "HTTP/1.1 200 OK\r\n\r\n", body(20'000, 'x');
  ASSERT_EQ(send(fd.get(), head.data(), head.size(), MSG_NOSIGNAL), static_cast<ssize_t>(head.size()));
  while (!prober.probe("a", target)) usleep(1000);  // The status line is enough for a result.
  ASSERT_EQ(send(fd.get(), body.data(), body.size(), MSG_NOSIGNAL), static_cast<ssize_t>(body.size()));
  ASSERT_EQ(shutdown(fd.get(), SHUT_WR), 0);
  EXPECT_EQ(recv(fd.get(), request, sizeof request, 0), 0) << strerror(errno);
}

TEST(Prober, closes_a_response_that_does_not_end) {
  const Listener listener;
  Prober prober;
  const ProbeTarget target = one_probe_of(listener.port);
  EXPECT_EQ(prober.probe("a", target), std::nullopt);
  const os::Fd fd(accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(fd);
  const std::string head = "HTTP/1.1 200 OK\r\n\r\n", more(4096, 'x');
  ASSERT_GT(send(fd.get(), head.data(), head.size(), MSG_NOSIGNAL), 0);
  while (send(fd.get(), more.data(), more.size(), MSG_NOSIGNAL) > 0)
    continue;  // Ends when the prober closes.
}

TEST(Prober, fails_on_no_response_garbage_and_a_closed_connection) {
  EXPECT_EQ(result(Answering("", false).port, "/"), false) << "no answer in time";
  EXPECT_EQ(result(Answering("SSH-2.0-OpenSSH\r\n", false).port, "/"), false);
  EXPECT_EQ(result(Answering("HTTP", true).port, "/"), false);
}

TEST(Prober, evaluates_a_response_as_soon_as_its_start_arrives) {
  EXPECT_EQ(http_success("HT"), std::nullopt);
  EXPECT_EQ(http_success("HTTP/1.1 20"), std::nullopt);
  EXPECT_EQ(http_success("HTTP/1.1 200"), true);
  EXPECT_EQ(http_success("HTTP/1.1 404"), false);
  EXPECT_EQ(http_success("HTTP/1.1x200"), false);
  EXPECT_EQ(http_success("X"), false);
}

}  // namespace
}  // namespace carve::controller
