#include "controller/runtime/haproxy.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "os/fd.h"

namespace carve::controller {
namespace {

using testing::IsEmpty;
using workload::EndpointState;

os::Fd socket_at(uint32_t port, bool listens) {
  os::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* address = reinterpret_cast<const sockaddr*>(&at);
  const bool good = listens ? bind(fd.get(), address, sizeof at) == 0 && listen(fd.get(), 64) == 0
                            : connect(fd.get(), address, sizeof at) == 0;
  return good ? std::move(fd) : os::Fd();
}

uint32_t port_of(const os::Fd& fd) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.sin_port);
}

// A server that answers every request of a connection with its letter.
class Replica {
 public:
  explicit Replica(char letter) : listener_(socket_at(0, true)), port(port_of(listener_)) {
    thread_ = std::thread([this, letter] {
      std::vector<os::Fd> connections;
      while (!ends_) {
        std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
        for (const os::Fd& c : connections) polled.push_back({c.get(), POLLIN, 0});
        poll(polled.data(), polled.size(), 20);
        for (size_t i = polled.size(); i-- > 1;) {
          if (polled[i].revents == 0) continue;
          char bytes[4096];
          const std::string answer = std::string("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n") + letter;
          if (recv(polled[i].fd, bytes, sizeof bytes, 0) <= 0)
            connections.erase(connections.begin() + static_cast<ptrdiff_t>(i) - 1);
          else
            send(polled[i].fd, answer.data(), answer.size(), MSG_NOSIGNAL);
        }
        if (polled[0].revents != 0)
          connections.emplace_back(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      }
    });
  }
  ~Replica() {
    ends_ = true;
    thread_.join();
  }

 private:
  os::Fd listener_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;

 public:
  const uint32_t port;
};

// Returns the last character of the answer to a request, or 0 if there was none with status 200.
char asked(uint32_t port) {
  const os::Fd fd = socket_at(port, false);
  const std::string request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  if (!fd || send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return 0;
  std::string answer;
  char bytes[4096];
  for (ssize_t got = 0; (got = recv(fd.get(), bytes, sizeof bytes, 0)) > 0;)
    answer.append(bytes, static_cast<size_t>(got));
  return answer.starts_with("HTTP/1.1 200") ? answer.back() : '\0';
}

struct HaProxyTest : testing::Test {
  void SetUp() override {
    if (system("command -v haproxy > /dev/null 2>&1") != 0)
      GTEST_SKIP() << "haproxy is not installed: apt-get install haproxy";
    char name[] = "/tmp/carve-haproxy-XXXXXX";
    folder = mkdtemp(name);
    const os::Fd free = socket_at(0, true), free_too = socket_at(0, true);
    port = port_of(free);
    second_port = port_of(free_too);
  }
  void TearDown() override {
    if (folder.empty()) return;
    HaProxy(folder).end();
    std::filesystem::remove_all(folder);
  }
  ServiceEndpoint endpoint(std::vector<EndpointServer> servers) const {
    return {.uid = "u", .name = "default/a", .port = port, .servers = std::move(servers)};
  }
  std::filesystem::path folder;
  uint32_t port = 0, second_port = 0;
};

TEST_F(HaProxyTest, loses_no_request_while_servers_come_and_go_and_the_controller_is_replaced) {
  const Replica a('a'), b('b');
  const std::vector<EndpointServer> sets[] = {
      {{"a-1-0", a.port}}, {{"a-1-0", a.port}, {"a-1-1", b.port}}, {{"a-1-1", b.port}}};
  HaProxy first(folder);
  const auto published = first.publish({endpoint(sets[0])});
  ASSERT_TRUE(published) << published.error().sentence;
  std::atomic<bool> ends = false;
  std::atomic<unsigned> answered = 0, lost = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&] {
      while (!ends) asked(port) != 0 ? ++answered : ++lost;
    });
  for (int round = 0; round < 12; ++round) {
    HaProxy next(folder);  // As after a restart of the controller.
    EXPECT_TRUE(next.states());
    const auto& servers = sets[round % 3];
    std::vector<ServiceEndpoint> endpoints = {endpoint(servers)};
    if (round % 4 >= 2)  // Comes and goes: each time HAProxy is reloaded.
      endpoints.push_back({.uid = "v", .name = "default/b", .port = second_port, .servers = {}});
    ASSERT_TRUE(next.publish(endpoints));
    const unsigned before = answered;
    while (answered < before + 50) std::this_thread::yield();
    // Drained servers are deleted when their connections have ended.
    for (int i = 0; i < 500; ++i) {
      const auto states = next.states();
      ASSERT_TRUE(states) << states.error().sentence;
      if (states->size() == servers.size()) break;
      ASSERT_TRUE(next.publish(endpoints));
      usleep(10'000);
    }
    const auto states = next.states();
    EXPECT_EQ(states->size(), servers.size());
    for (const auto& [name, state] : *states) EXPECT_EQ(state, EndpointState::serving) << name;
  }
  ends = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(lost, 0u) << answered << " answered";
}

TEST_F(HaProxyTest, an_endpoint_without_servers_answers_503_and_one_that_is_gone_does_not_listen) {
  const Replica a('a');
  HaProxy proxy(folder);
  ASSERT_TRUE(proxy.publish({endpoint({{"a-1-0", a.port}})}));
  EXPECT_EQ(asked(port), 'a');
  ASSERT_TRUE(proxy.publish({endpoint({})}));
  EXPECT_EQ(asked(port), '\0');
  EXPECT_TRUE(socket_at(port, false));
  ASSERT_TRUE(proxy.publish({}));
  for (int i = 0; i < 1000 && socket_at(port, false); ++i) usleep(10'000);
  EXPECT_FALSE(socket_at(port, false));
  EXPECT_THAT(*proxy.states(), IsEmpty());
}

TEST_F(HaProxyTest, a_killed_haproxy_is_started_again) {
  const Replica a('a');
  HaProxy proxy(folder);
  ASSERT_TRUE(proxy.publish({endpoint({{"a-1-0", a.port}})}));
  proxy.end();
  for (int i = 0; i < 1000 && socket_at(port, false); ++i) usleep(10'000);
  EXPECT_TRUE(proxy.states()->empty());
  ASSERT_TRUE(proxy.publish({endpoint({{"a-1-0", a.port}})}));
  EXPECT_EQ(asked(port), 'a');
}

}  // namespace
}  // namespace carve::controller
