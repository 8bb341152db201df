#include "controller/runtime/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/runtime/testing/proxy_traffic.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

using testing::EndsWith;

constexpr int64_t patience_ns = 60 * os::second;  // Of probes that do not end by time.

// Answers each connection with the bytes. If it is told to, it then keeps the connection open until the end.
class Server {
 public:
  enum class After : uint8_t { close, keep };
  Server(std::string bytes, After after) : listener_(listen_anywhere(port)) {
    thread_ = std::thread([this, bytes = std::move(bytes), after] {
      for (int fd; (fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
        os::Fd connection(fd);
        read_until(fd, "\r\n\r\n");
        send_all(fd, bytes);
        if (after == After::keep) kept_.push_back(std::move(connection));
      }
    });
  }
  ~Server() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port = 0;

 private:
  os::Fd listener_;
  std::vector<os::Fd> kept_;
  std::thread thread_;
};

ProbeResult probe(const ProbeTarget& target, int64_t timeout_ns = patience_ns) {
  os::Loop loop;
  Prober prober(loop);
  ProbeResult result;
  prober.begin(target, timeout_ns, [&](const ProbeResult& got) {
    result = got;
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(prober.under_way(), 0u);
  return result;
}

TEST(Probe, a_connection_succeeds_if_a_process_listens) {
  uint16_t port = 0;
  os::Fd listener = listen_anywhere(port);
  const ProbeResult open = probe({.port = port});
  EXPECT_TRUE(open.succeeded);
  EXPECT_EQ(open.sentence, fmt::format("port {}, connect: connected", port));
  listener.reset();
  const ProbeResult closed = probe({.port = port});
  EXPECT_FALSE(closed.succeeded);
  EXPECT_EQ(closed.sentence, fmt::format("port {}, connect: Connection refused", port));
}

TEST(Probe, an_answer_of_2xx_or_3xx_succeeds) {
  struct Row {
    const char* answer;
    bool succeeds;
    const char* what;
  };
  const Row rows[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true, "status 200"},
      {"HTTP/1.0 204\r\n\r\n", true, "status 204"},
      {"HTTP/1.1 302 Found\n", true, "status 302"},
      {"HTTP/1.1 399 \r\n", true, "status 399"},
      {"HTTP/1.1 404 Not Found\r\n", false, "status 404"},
      {"HTTP/1.1 503 Service Unavailable\r\n", false, "status 503"},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", false, "status 100"},
  };
  for (const Row& row : rows)
    for (const auto after : {Server::After::close, Server::After::keep}) {
      const Server server(row.answer, after);
      const ProbeResult result = probe({.port = server.port, .path = "/healthz"});
      EXPECT_EQ(result.succeeded, row.succeeds) << row.answer;
      EXPECT_EQ(result.sentence, fmt::format("port {}, GET /healthz: {}", server.port, row.what));
    }
}

TEST(Probe, hostile_answers_fail) {
  struct Row {
    std::string answer;
    const char* what;
  };
  const Row rows[] = {
      {"", "the connection was closed without an answer"},
      {"HTTP/1.1 200", "the connection was closed without an answer"},
      {"SSH-2.0-OpenSSH_9.2\r\n", "the answer is not HTTP"},
      {std::string("\0\xff\n", 3), "the answer is not HTTP"},
      {"HTTP/1.1 2000 OK\r\n", "the answer is not HTTP"},
      {"HTTP/1.1 " + std::string(4000, '2'), "the answer is not HTTP"},
      {std::string(1 << 20, 'x'), "the answer is not HTTP"},
  };
  for (const Row& row : rows) {
    const Server server(row.answer, Server::After::close);
    const ProbeResult result = probe({.port = server.port, .path = "/"});
    EXPECT_FALSE(result.succeeded);
    EXPECT_THAT(result.sentence, EndsWith(row.what)) << row.answer.substr(0, 40);
  }
}

TEST(Probe, an_endless_header_is_not_read) {
  const Server server("HTTP/1.1 200 OK\r\nA: " + std::string(1 << 16, 'a'), Server::After::keep);
  EXPECT_TRUE(probe({.port = server.port, .path = "/"}).succeeded);
}

TEST(Probe, a_silent_program_is_given_up) {
  const Server silent("", Server::After::keep);
  const ProbeResult result = probe({.port = silent.port, .path = "/"}, os::millisecond);
  EXPECT_FALSE(result.succeeded);
  EXPECT_THAT(result.sentence, EndsWith("no answer within 1 ms"));
}

TEST(Probe, many_probes_run_at_once_and_a_canceled_one_is_not_heard_of) {
  const Server good("HTTP/1.1 200 OK\r\n\r\n", Server::After::close), bad("no\n", Server::After::close);
  os::Loop loop;
  Prober prober(loop);
  constexpr int count = 50;
  int succeeded = 0, failed = 0;
  for (int i = 0; i < count; ++i) {
    const auto done = [&](const ProbeResult& result) {
      ++(result.succeeded ? succeeded : failed);
      if (succeeded + failed == count) loop.stop();
    };
    prober.begin({.port = i % 2 == 0 ? good.port : bad.port, .path = "/"}, patience_ns, done);
    prober.cancel(prober.begin({.port = good.port, .path = "/"}, patience_ns,
                               [](const ProbeResult&) { ADD_FAILURE() << "it was canceled"; }));
  }
  EXPECT_EQ(prober.under_way(), static_cast<size_t>(count));
  loop.run();
  EXPECT_EQ(succeeded, count / 2);
  EXPECT_EQ(failed, count / 2);
}

TEST(Probe, a_prober_may_end_before_its_probes) {
  os::Loop loop;
  const Server silent("", Server::After::keep);
  {
    Prober prober(loop);
    for (const uint16_t port : {silent.port, free_port()})
      prober.begin({.port = port, .path = "/"}, os::millisecond,
                   [](const ProbeResult&) { ADD_FAILURE() << "its prober has ended"; });
  }
  loop.after(2 * os::millisecond, [&] { loop.stop(); });  // After the timers of the probes.
  loop.run();
}

TEST(Probe, a_path_that_would_be_two_lines_is_refused) {
  EXPECT_TRUE(check(ProbeTarget{.port = 1}));
  EXPECT_TRUE(check(ProbeTarget{.port = 1, .path = "/a?b=%20#c"}));
  EXPECT_FALSE(check(ProbeTarget{.port = 0}));
  for (const std::string& path :
       {std::string(), std::string("a"), std::string("/a b"), std::string("/\r\nX: y"), std::string("/\0", 2),
        std::string("/\xc3\xa9"), "/" + std::string(1024, 'a')})
    EXPECT_FALSE(check(ProbeTarget{.port = 1, .path = path})) << path;
}

TEST(Probe, a_status_line_has_one_form) {
  EXPECT_EQ(read_status_line("HTTP/1.1 200 OK\r"), 200u);
  for (const char* line :
       {"", "HTTP/1.1", "HTTP/1.1 20", "HTTP/1.1 2x0 OK", "HTTP/2 200 OK", "HTTP/1.1 099 X",
        "http/1.1 200 OK", "HTTP/1.1  200 OK", "HTTP/1.1 200OK", " HTTP/1.1 200 OK"})
    EXPECT_FALSE(read_status_line(line)) << line;
}

}  // namespace
}  // namespace carve::controller
