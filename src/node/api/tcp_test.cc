// The routes on a TCP socket, where the kernel does not identify callers.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>

#include "http/server.h"
#include "node/agent/testing/agent_fake.h"
#include "node/api/reply.h"
#include "node/api/routes.h"
#include "os/loop.h"
#include "os/tcp.h"

namespace carve::node {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

os::Fd connect_over_tcp(const os::TcpAddress& address) {
  os::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

TEST(RoutesOverTcp, respond_with_401_on_every_route_to_a_caller_without_a_token) {
  AgentFake agent;
  add_device(agent, 0);
  add_slice(agent, "a", 0);
  Routes routes(agent, [] { return api::Diagnosis{}; });
  os::Loop loop;
  auto address = *os::parse_tcp_address("127.0.0.1:0");
  auto listener = os::listen_at(address);
  ASSERT_TRUE(listener);
  http::Server server(
      loop, std::move(*listener),
      {.handle = [&](const auto& request, const auto& caller) { return routes.answer(request, caller); },
       .refuse = refuse_bytes});

  struct Client {
    std::string route;
    os::Fd fd;
    std::string read;
  };
  std::vector<Client> clients;
  for (const std::span<const Route> table : {slice_routes(), machine_routes()})
    for (const Route& route : table) {
      std::string path = route.path;
      if (const size_t hole = path.find("{}"); hole != std::string::npos) path.replace(hole, 2, "a");
      clients.push_back({fmt::format("{} {}", route.method, path), connect_over_tcp(address), ""});
      const std::string request =
          fmt::format("{} {} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}",
                      route.method, path);
      ASSERT_EQ(send(clients.back().fd.get(), request.data(), request.size(), 0),
                static_cast<ssize_t>(request.size()));
    }
  size_t open = clients.size();
  ASSERT_GE(open, 20u);
  for (Client& client : clients)
    loop.watch(client.fd.get(), EPOLLIN, [&](uint32_t) {
      char bytes[4096];
      const ssize_t n = recv(client.fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (n > 0) client.read.append(bytes, static_cast<size_t>(n));
      if (n > 0 || (n < 0 && errno == EAGAIN)) return;
      loop.forget(client.fd.get());
      if (--open == 0) loop.stop();
    });
  loop.run();
  for (const Client& client : clients) {
    EXPECT_THAT(client.read, StartsWith("HTTP/1.1 401")) << client.route;
    EXPECT_THAT(client.read, HasSubstr("the caller is not identified")) << client.route;
  }
  EXPECT_TRUE(agent.calls.empty());
}

}  // namespace
}  // namespace carve::node
