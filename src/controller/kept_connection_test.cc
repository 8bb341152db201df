#include "controller/kept_connection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "os/clock.h"
#include "os/socket.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using Bodies = std::vector<std::optional<std::string>>;

std::string response(const std::string& body, const std::string& headers = "") {
  return fmt::format("HTTP/1.1 200 OK\r\n{}Content-Length: {}\r\n\r\n{}", headers, body.size(), body);
}

// A connection to an agent that the test simulates.
struct KeptConnectionTest : testing::Test {
  KeptConnectionTest() {
    char name[] = "/tmp/carve-connection-XXXXXX";
    folder = mkdtemp(name);
    listener = std::move(*os::listen_at(folder + "/s", SOCK_STREAM | SOCK_NONBLOCK, 0600));
    connection.emplace(loop, folder + "/s");
    loop.every(os::millisecond, [this] {
      if (is_done() || --patience == 0) loop.stop();
    });
  }
  ~KeptConnectionTest() override { std::filesystem::remove_all(folder); }

  void run_until(std::function<bool()> condition) {
    is_done = std::move(condition);
    patience = 30'000;
    loop.run();
    ASSERT_TRUE(is_done());
  }
  void get(const std::string& target, std::weak_ptr<void> wanted) {
    ASSERT_TRUE(connection->get(target, now_ns++, std::move(wanted),
                                [this](const auto& body) { bodies.push_back(body); }));
  }
  void get(const std::string& target) { get(target, always); }

  void accept() { peer = os::Fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  bool is_another_connection() const {
    return os::Fd(accept4(listener.get(), nullptr, nullptr, 0)).get() >= 0;
  }
  // Returns the targets of the requests that the agent received since the last call.
  std::vector<std::string> requests() const {
    std::string text(1 << 16, '\0');
    text.resize(
        static_cast<size_t>(std::max<ssize_t>(0, recv(peer.get(), text.data(), text.size(), MSG_DONTWAIT))));
    std::vector<std::string> out;
    for (size_t at = 0; (at = text.find("GET ", at)) != std::string::npos; ++at)
      out.push_back(text.substr(at + 4, text.find(' ', at + 4) - at - 4));
    return out;
  }
  void answer(const std::string& bytes) const {
    ASSERT_EQ(send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  std::string folder;
  os::Fd listener, peer;
  os::Loop loop;
  std::function<bool()> is_done = [] { return true; };
  int patience = 0;
  int64_t now_ns = 1000;
  const std::shared_ptr<int> always = std::make_shared<int>();
  Bodies bodies;
  std::optional<KeptConnection> connection;
};

TEST_F(KeptConnectionTest, passes_on_responses_in_order_over_one_connection) {
  get("/a");
  get("/b");
  accept();
  EXPECT_THAT(requests(), ElementsAre("/a", "/b"));
  const std::string both = response("1") + "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}";
  answer(both.substr(0, 25));
  answer(both.substr(25));
  run_until([&] { return bodies.size() == 2; });
  get("/c");
  EXPECT_THAT(requests(), ElementsAre("/c"));
  answer(response("3"));
  run_until([&] { return bodies.size() == 3; });
  EXPECT_EQ(bodies, (Bodies{"1", std::nullopt, "3"}));
  EXPECT_FALSE(is_another_connection());
}

TEST_F(KeptConnectionTest, sends_eight_requests_before_the_first_response) {
  for (int i = 0; i < 10; ++i) get(fmt::format("/{}", i));
  accept();
  EXPECT_EQ(requests().size(), 8u);
  answer(response("0"));
  run_until([&] { return bodies.size() == 1; });
  EXPECT_THAT(requests(), ElementsAre("/8"));
}

TEST_F(KeptConnectionTest, does_not_send_a_request_that_is_no_longer_wanted) {
  auto wanted = std::make_shared<int>();
  for (int i = 0; i < 8; ++i) get(fmt::format("/{}", i));
  get("/unwanted", wanted);
  get("/last");
  wanted.reset();
  accept();
  EXPECT_EQ(requests().size(), 8u);
  answer(response("0"));
  run_until([&] { return bodies.size() == 1; });
  EXPECT_THAT(requests(), ElementsAre("/last"));
}

TEST_F(KeptConnectionTest, reconnects_after_an_idle_connection_was_closed) {
  get("/a");
  accept();
  answer(response("1"));
  run_until([&] { return bodies.size() == 1; });
  // The agent closes the connection while the next request is in progress.
  get("/b");
  get("/c");
  peer.reset();
  run_until([&] {
    if (!peer) accept();
    return static_cast<bool>(peer);
  });
  EXPECT_THAT(requests(), ElementsAre("/b", "/c"));
  answer(response("2", "Connection: close\r\n") + "more");
  run_until([&] { return bodies.size() == 2; });
  accept();
  EXPECT_THAT(requests(), ElementsAre("/c"));
  answer(response("3"));
  run_until([&] { return bodies.size() == 3; });
  EXPECT_EQ(bodies, (Bodies{"1", "2", "3"}));
  // The agent closes the connection while nothing is requested.
  peer.reset();
  int turns = 0;
  run_until([&] { return ++turns > 3; });
  get("/d");
  accept();
  EXPECT_THAT(requests(), ElementsAre("/d"));
}

TEST_F(KeptConnectionTest, does_not_reconnect_to_an_agent_that_sends_no_response) {
  for (const std::string& bytes : {std::string(), std::string("nonsense\r\n\r\n"), std::string(100'000, 'x'),
                                   std::string("HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n"),
                                   std::string("HTTP/1.1 200 OK\r\nContent-Le")}) {
    bodies.clear();
    get("/a");
    get("/b");
    accept();
    answer(bytes);
    shutdown(peer.get(), SHUT_WR);
    run_until([&] { return bodies.size() == 2; });
    EXPECT_EQ(bodies, (Bodies{std::nullopt, std::nullopt})) << bytes.substr(0, 20);
    EXPECT_FALSE(is_another_connection());
  }
  listener.reset();
  EXPECT_FALSE(connection->get("/a", 0, always, [](const auto&) { FAIL(); }));
}

TEST_F(KeptConnectionTest, ends_the_connection_if_it_receives_bytes_without_a_request) {
  get("/a");
  accept();
  answer(response("1") + response("2"));
  EXPECT_THAT(requests(), ElementsAre("/a"));
  char byte = 0;
  run_until([&] { return bodies.size() == 1 && recv(peer.get(), &byte, 1, MSG_DONTWAIT) == 0; });
}

TEST_F(KeptConnectionTest, does_not_mistake_a_late_response_for_that_of_another_request) {
  for (int i = 0; i < 10; ++i) get(fmt::format("/{}", i));
  EXPECT_EQ(connection->give_up(now_ns - 1), 9u);
  EXPECT_EQ(bodies, Bodies(9));
  EXPECT_TRUE(connection->is_silent());
  EXPECT_TRUE(connection->is_awaited());
  EXPECT_EQ(connection->give_up(now_ns - 1), 0u);
  accept();
  EXPECT_EQ(requests().size(), 8u);
  for (int i = 0; i < 8; ++i) answer(response("late"));
  run_until([&] { return !connection->is_silent(); });
  EXPECT_THAT(requests(), ElementsAre("/9"));
  answer(response("9"));
  run_until([&] { return bodies.size() == 10; });
  EXPECT_EQ(bodies.back(), "9");
  EXPECT_FALSE(connection->is_awaited());
}

TEST_F(KeptConnectionTest, does_not_report_an_agent_that_has_ended_as_silent) {
  get("/a");
  accept();
  EXPECT_EQ(connection->give_up(now_ns), 1u);
  EXPECT_TRUE(connection->is_silent());
  peer.reset();
  run_until([&] { return !connection->is_silent(); });
  EXPECT_EQ(bodies, Bodies(1));
}

TEST_F(KeptConnectionTest, verifies_the_server_of_each_connection) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can serve as another user";
  get("/a");
  accept();
  answer(response("1"));
  run_until([&] { return bodies.size() == 1; });
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  ASSERT_EQ(seteuid(12345), 0);
  listener = os::Fd();
  unlink((folder + "/s").c_str());
  auto another = os::listen_at(folder + "/s", SOCK_STREAM, 0666);
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_TRUE(another) << another.error().message;
  get("/b");
  peer.reset();
  run_until([&] { return bodies.size() == 2; });
  EXPECT_EQ(bodies, (Bodies{"1", std::nullopt}));
  EXPECT_FALSE(connection->get("/c", 0, always, [](const auto&) { FAIL(); }));
}

}  // namespace
}  // namespace carve::controller
