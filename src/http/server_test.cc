#include "http/server.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>

#include "os/socket.h"

namespace carve::http {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr size_t large_bytes = 8 << 20;  // More than the kernel buffers for a socket.

Server::Hooks limits(size_t connections = max_connections, size_t held_bytes = max_held_bytes) {
  return {.handle = nullptr, .refuse = nullptr, .connections = connections, .held_bytes = held_bytes};
}

// A server in this thread's loop. Clients are sockets; the loop collects the bytes that they receive.
struct Served {
  std::string folder = [] {
    char name[] = "/tmp/carve-http-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  os::Loop loop;
  std::map<Stream*, Stream*> streams;  // The open streams.
  std::vector<std::string> callers;    // The callers of the requests.
  std::function<void(const Caller&)> on_request = nullptr;
  std::optional<Server> server;

  struct Client {
    os::Fd fd;
    std::string read;
    bool closed = false;
  };

  explicit Served(size_t queue_bytes, Server::Hooks hooks = limits()) {
    hooks.handle = [this](const Request& r, const Caller& caller) {
      callers.push_back(caller.text());
      if (on_request) on_request(caller);
      return answer(r);
    };
    hooks.refuse = [](unsigned status, const std::string& detail) {
      return Response{status, "text/plain", detail};
    };
    hooks.queue_bytes = queue_bytes;
    server.emplace(loop, *os::listen_at(folder + "/s", SOCK_STREAM, 0600), std::move(hooks));
  }
  ~Served() { std::filesystem::remove_all(folder); }

  Response answer(const Request& request) {
    if (request.path == "/large") return {200, "text/plain", std::string(large_bytes, 'x')};
    if (request.path != "/stream") return {200, "text/plain", request.path};
    return {.content = EventStream{{}, [this](Stream& s) {
                                     streams[&s] = &s;
                                     return std::shared_ptr<void>(
                                         &s, [this](Stream* gone) { streams.erase(gone); });
                                   }}};
  }

  Client connect(const std::string& request) {
    Client client{*os::connect_to(folder + "/s", SOCK_STREAM), "", false};
    EXPECT_EQ(send(client.fd.get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    return client;
  }
  void watch(
      Client& client, const std::function<void()>& then = [] {}) {
    loop.watch(client.fd.get(), EPOLLIN, [this, &client, then](uint32_t) {
      char bytes[4096];
      const ssize_t n = recv(client.fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (n > 0) client.read.append(bytes, static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EAGAIN)) {
        client.closed = true;
        loop.forget(client.fd.get());
      }
      then();
    });
  }
};

TEST(Server, answers_the_requests_of_a_connection) {
  Served served(1000);
  auto client = served.connect("GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nConnection: close\r\n\r\n");
  served.watch(client, [&] {
    if (client.closed) served.loop.stop();
  });
  served.loop.run();
  EXPECT_THAT(client.read, HasSubstr("\r\n\r\n/aHTTP/1.1 200"));
  EXPECT_THAT(client.read, EndsWith("/b"));
}

// The process that connected ends. Its child has inherited the connection and sends a request.
TEST(Server, rejects_a_request_on_the_connection_of_a_process_that_has_ended) {
  Server::Hooks hooks = limits();
  hooks.identify = [](int socket) -> std::optional<Caller> {
    auto peer = os::peer_of(socket);
    return peer ? std::optional(Caller::user(std::move(*peer), {})) : std::nullopt;
  };
  Served served(1000, std::move(hooks));
  int answer[2], accepted[2], ended[2];
  ASSERT_EQ(pipe(answer) + pipe(accepted) + pipe(ended), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto socket = os::connect_to(served.folder + "/s", SOCK_STREAM);
    const std::string request = "GET /first HTTP/1.1\r\n\r\n";
    char bytes[4096];
    send(socket->get(), request.data(), request.size(), 0);
    if (recv(socket->get(), bytes, sizeof bytes, 0) <= 0) _exit(1);  // The process has been identified.
    if (fork() != 0) _exit(0);
    close(ended[1]);
    if (read(ended[0], bytes, 1) != 0) _exit(1);  // Waits until the parent has waited for the child.
    send(socket->get(), request.data(), request.size(), 0);
    ssize_t n = 0;
    while ((n = recv(socket->get(), bytes, sizeof bytes, 0)) > 0)
      if (write(answer[1], bytes, static_cast<size_t>(n)) != n) _exit(1);
    _exit(0);
  }
  close(answer[1]);
  served.loop.every(os::millisecond, [&] {
    if (ended[1] < 0 || waitpid(child, nullptr, WNOHANG) != child) return;
    close(std::exchange(ended[1], -1));
  });
  std::string read;
  served.loop.watch(answer[0], EPOLLIN, [&](uint32_t) {
    char bytes[4096];
    const ssize_t n = ::read(answer[0], bytes, sizeof bytes);
    if (n <= 0) return served.loop.stop();
    read.append(bytes, static_cast<size_t>(n));
  });
  served.loop.run();
  EXPECT_THAT(read, HasSubstr("HTTP/1.1 401"));
  EXPECT_THAT(read, HasSubstr("which made this connection, has ended; connect again"));
  EXPECT_THAT(read, HasSubstr("Connection: close"));
}

TEST(Server, a_stream_ends_with_the_process_that_opened_it) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  Server::Hooks hooks = limits();
  hooks.identify = [id = os::stat_of(child)->id](int) {
    return std::optional(Caller::user(os::Peer(id, os::open_process(id), 7), {}));
  };
  Served served(1000, std::move(hooks));
  auto client = served.connect("GET /stream HTTP/1.1\r\n\r\n");
  served.watch(client, [&] {
    if (client.closed) served.loop.stop();
  });
  served.loop.every(os::millisecond, [&] {
    if (served.streams.empty()) return;
    kill(child, SIGKILL);
    served.server->tick(os::monotonic_ns());
  });
  served.loop.run();
  EXPECT_TRUE(served.streams.empty());
  waitpid(child, nullptr, 0);
}

TEST(Server, reads_no_request_before_its_caller_is_fully_identified) {
  std::function<void(Caller)> then;
  Server::Hooks hooks = limits();
  hooks.complete = [&then](const Caller&, std::function<void(Caller)> known) {
    then = std::move(known);
    return std::shared_ptr<void>(&then, [](void*) {});
  };
  Served served(1000, std::move(hooks));
  auto client = served.connect("GET /a HTTP/1.1\r\n\r\n");
  served.watch(client, [&] { served.loop.stop(); });
  served.loop.every(os::millisecond, [&] {
    if (!then) return;
    EXPECT_TRUE(client.read.empty());
    EXPECT_TRUE(served.callers.empty());
    std::exchange(then, nullptr)(Caller::user(7, {5, 1}, {}).inside("a"));
  });
  served.loop.run();
  EXPECT_THAT(client.read, EndsWith("/a"));
  EXPECT_THAT(served.callers, testing::ElementsAre("uid 7 in slice a"));
}

TEST(Server, does_not_answer_a_caller_that_is_never_fully_identified) {
  bool is_asked = false;
  Server::Hooks hooks = limits();
  hooks.complete = [&](const Caller&, const std::function<void(Caller)>&) {
    is_asked = true;
    return std::shared_ptr<void>(&is_asked, [](void*) {});
  };
  Served served(1000, std::move(hooks));
  auto client = served.connect("GET /a HTTP/1.1\r\n\r\n");
  served.watch(client, [&] { served.loop.stop(); });
  served.loop.every(os::millisecond, [&] {
    if (is_asked) served.server->tick(os::monotonic_ns() + 60 * os::second);
  });
  served.loop.run();
  EXPECT_TRUE(client.closed && client.read.empty());
  EXPECT_TRUE(served.callers.empty());
}

TEST(Server, a_connection_that_closes_cancels_the_identification) {
  int questions = 0, dropped = 0;
  Server::Hooks hooks = limits(1);
  hooks.complete = [&](const Caller&, const std::function<void(Caller)>&) {
    ++questions;
    return std::shared_ptr<void>(&dropped, [&](void*) { ++dropped; });
  };
  Served served(1000, std::move(hooks));
  auto first = served.connect("GET /a HTTP/1.1\r\n\r\n");
  auto second = served.connect("GET /b HTTP/1.1\r\n\r\n");  // The table is full.
  served.loop.every(os::millisecond, [&] {
    if (dropped == 1) served.loop.stop();
  });
  served.loop.run();
  EXPECT_EQ(questions, 2);
}

TEST(Server, closes_a_stream_whose_reader_stops_but_not_the_others) {
  Served served(100'000);
  auto stopped = served.connect("GET /stream HTTP/1.1\r\n\r\n");  // This client never reads.
  auto reader = served.connect("GET /stream HTTP/1.1\r\n\r\n");
  Served::Client other;
  const std::string data(10'000, 'x');
  int number = 0;
  served.loop.every(os::millisecond / 10, [&, last_sent = false]() mutable {
    if (served.streams.size() == 2) {
      for (const auto& [key, stream] : served.streams) stream->send({fmt::format("{}", number), data});
      ++number;
    } else if (number > 0 && !other.fd) {  // The stopped reader's connection has been closed.
      other = served.connect("GET /other HTTP/1.1\r\n\r\n");
      served.watch(other);
    } else if (!other.read.empty() && !last_sent) {
      last_sent = served.streams.begin()->second->send({"last", ""});
    }
  });
  served.watch(reader, [&] {
    if (reader.read.ends_with("id: last\ndata: \n\n")) served.loop.stop();
  });
  served.loop.run();
  for (int i = 0; i < number; ++i) EXPECT_THAT(reader.read, HasSubstr(fmt::format("id: {}\n", i)));
  EXPECT_THAT(other.read, EndsWith("/other"));
  EXPECT_FALSE(reader.closed);
  EXPECT_EQ(served.streams.size(), 1u);
}

TEST(Server, rejects_streams_above_its_limit_but_answers_other_requests) {
  Served served(1000);
  std::vector<Served::Client> clients;
  for (size_t i = 0; i < max_streams; ++i) clients.push_back(served.connect("GET /stream HTTP/1.1\r\n\r\n"));
  Served::Client refused, other;
  served.loop.every(os::millisecond, [&] {
    if (served.streams.size() < max_streams || refused.fd) return;
    refused = served.connect("GET /stream HTTP/1.1\r\n\r\n");
    other = served.connect("GET /other HTTP/1.1\r\n\r\n");
    const auto then = [&] {
      if (!refused.read.empty() && !other.read.empty()) served.loop.stop();
    };
    served.watch(refused, then);
    served.watch(other, then);
  });
  served.loop.run();
  EXPECT_THAT(refused.read, HasSubstr("HTTP/1.1 429 "));
  EXPECT_THAT(refused.read, HasSubstr("64 streams are open; the limit is 64"));
  EXPECT_THAT(other.read, EndsWith("/other"));
}

TEST(Server, closes_the_longest_waiting_peer_if_the_table_is_full) {
  Served served(1000, limits(3));
  auto stream = served.connect("GET /stream HTTP/1.1\r\n\r\n");
  auto slow = served.connect("GET / HT");
  auto silent = served.connect("");
  Served::Client good;
  served.watch(slow);
  served.watch(silent);
  served.loop.every(os::millisecond, [&] {
    if (served.streams.empty() || good.fd) return;
    good = served.connect("GET /good HTTP/1.1\r\n\r\n");
    served.watch(good, [&] { served.loop.stop(); });
  });
  served.loop.run();
  EXPECT_THAT(good.read, EndsWith("/good"));
  EXPECT_EQ(served.streams.size(), 1u) << "a stream is not closed for another peer";
  served.loop.after(os::millisecond, [&] { served.loop.stop(); });
  served.loop.run();
  EXPECT_EQ(slow.closed + silent.closed, 1);
}

TEST(Server, a_full_table_without_waiting_peers_delays_new_connections) {
  Served served(1000, limits(2));
  std::vector<Served::Client> clients;
  for (int i = 0; i < 2; ++i) clients.push_back(served.connect("GET /stream HTTP/1.1\r\n\r\n"));
  Served::Client next;
  served.loop.every(os::millisecond, [&] {
    if (served.streams.size() < 2 || next.fd) return;
    next = served.connect("GET /next HTTP/1.1\r\n\r\n");
    served.watch(next, [&] { served.loop.stop(); });
    served.loop.after(10 * os::millisecond, [&] {
      EXPECT_TRUE(next.read.empty());
      clients[0].fd.reset();
    });
  });
  served.loop.run();
  EXPECT_THAT(next.read, EndsWith("/next"));
}

// A server whose connections belong, in order, to the users in `next`. Uid 0 has a reserve.
struct Users {
  std::deque<uint32_t> next;
  uint32_t last = 0;
  int64_t later_ns = 0;  // How far the server's clock is ahead.

  Server::Hooks hooks(size_t connections) {
    Server::Hooks out = limits(connections);
    out.uid_of = [this](int) {
      last = next.front();
      next.pop_front();
      return std::optional(last);
    };
    out.identify = [this](int) {
      return std::optional(Caller::user(last, {5, 1}, std::array<uint32_t, 1>{0}));
    };
    out.has_reserve = [](uint32_t uid) { return uid == 0; };
    out.now_ns = [this] { return os::monotonic_ns() + later_ns; };
    return out;
  }
};

// Connects as the user. Returns when the client has a response or its connection is closed.
Served::Client answer_to(Served& served, Users& users, uint32_t uid, const std::string& path) {
  users.next.push_back(uid);
  Served::Client client = served.connect("GET " + path + " HTTP/1.1\r\n\r\n");
  served.watch(client, [&] { served.loop.stop(); });
  served.loop.run();
  if (!client.closed) served.loop.forget(client.fd.get());
  return client;
}

bool is_closed(const Served::Client& client) {
  pollfd state{.fd = client.fd.get(), .events = 0, .revents = 0};
  return poll(&state, 1, 0) == 1 && (state.revents & POLLHUP) != 0;
}

TEST(Server, closes_a_slow_reader_only_for_its_own_user) {
  Users users;
  Server::Hooks hooks = users.hooks(16);
  hooks.connections_from_uid = 2;
  Served served(1000, std::move(hooks));
  const auto first = answer_to(served, users, 7, "/large");
  const auto second = answer_to(served, users, 7, "/large");
  EXPECT_THAT(second.read, HasSubstr("200"));
  const auto young = answer_to(served, users, 7, "/a");
  EXPECT_TRUE(young.closed && young.read.empty()) << "no client has read slowly for long";
  EXPECT_THAT(answer_to(served, users, 8, "/b").read, EndsWith("/b"));
  users.later_ns = slow_reader_ns + os::second;
  EXPECT_THAT(answer_to(served, users, 8, "/b").read, EndsWith("/b"));
  EXPECT_FALSE(is_closed(first));
  EXPECT_THAT(answer_to(served, users, 7, "/c").read, EndsWith("/c"));
  EXPECT_TRUE(is_closed(first));
  EXPECT_FALSE(is_closed(second));
}

TEST(Server, reserves_a_quarter_of_the_places_for_root) {
  Users users;
  Served served(1000, users.hooks(8));
  std::vector<Served::Client> clients;
  for (uint32_t uid = 1; uid <= 6; ++uid) clients.push_back(answer_to(served, users, uid, "/stream"));
  EXPECT_EQ(served.streams.size(), 6u);
  const auto refused = answer_to(served, users, 9, "/a");
  EXPECT_TRUE(refused.closed && refused.read.empty());
  for (int i = 0; i < 4; ++i) clients.push_back(answer_to(served, users, 0, "/b"));
  for (size_t i = 6; i < clients.size(); ++i) EXPECT_THAT(clients[i].read, EndsWith("/b"));
  EXPECT_EQ(served.streams.size(), 6u);
  EXPECT_TRUE(is_closed(clients[6]) && is_closed(clients[7]))
      << "root's own silent connections are closed for root";
}

// Users reconnect without a pause but send nothing. Each of their connections is closed for the next one.
TEST(Server, a_flood_of_silent_connections_does_not_lock_out_root) {
  Users users;
  Server::Hooks hooks = users.hooks(16);
  hooks.connections_from_uid = 4;
  Served served(1000, std::move(hooks));
  std::vector<Served::Client> flood;
  for (int i = 0; i < 500; ++i) {
    users.next.push_back(i % 2 == 0 ? 7 : 8);
    flood.push_back(served.connect("POST / HTTP/1.1\r\nContent-Length: 60000\r\n\r\n{"));
  }
  EXPECT_THAT(answer_to(served, users, 0, "/root").read, EndsWith("/root"));
  EXPECT_THAT(answer_to(served, users, 9, "/other").read, EndsWith("/other"));
  EXPECT_EQ(std::ranges::count_if(flood, [](const auto& client) { return !is_closed(client); }), 8);
}

TEST(Server, streams_have_a_limit_per_user_and_a_reserve) {
  Users users;
  Server::Hooks hooks = users.hooks(16);
  hooks.streams = 4;
  hooks.streams_from_peer = 2;
  Served served(1000, std::move(hooks));
  std::vector<Served::Client> open;
  const auto stream_of = [&](uint32_t uid) {
    open.push_back(answer_to(served, users, uid, "/stream"));
    return open.back().read;
  };
  EXPECT_THAT(stream_of(7), HasSubstr("200 OK"));
  EXPECT_THAT(stream_of(7), HasSubstr("200 OK"));
  EXPECT_THAT(stream_of(7), EndsWith("uid 7: 2 streams are open; the limit is 2; close one first"));
  EXPECT_THAT(stream_of(8), HasSubstr("200 OK"));
  EXPECT_THAT(stream_of(9), EndsWith("3 streams are open; the limit is 3; close one first"));
  EXPECT_THAT(stream_of(0), HasSubstr("200 OK"));
  EXPECT_THAT(stream_of(0), EndsWith("4 streams are open; the limit is 4; close one first"));
}

// Each request of uid 7 takes 60 ms by the server's clock. Above 100 ms its connections are not read, and
// others are served first.
TEST(Server, a_user_whose_requests_take_all_the_time_waits_for_the_others) {
  Users users;
  Served served(1000, users.hooks(64));
  served.on_request = [&](const Caller& caller) {
    users.later_ns += caller.uid() == 7 ? 60 * os::millisecond : 0;
  };
  std::vector<Served::Client> clients;
  for (int i = 0; i < 8; ++i) {
    users.next.push_back(7);
    clients.push_back(served.connect(fmt::format("GET /busy{} HTTP/1.1\r\n\r\n", i)));
  }
  EXPECT_THAT(answer_to(served, users, 0, "/root").read, EndsWith("/root"));
  EXPECT_THAT(answer_to(served, users, 8, "/other").read, EndsWith("/other"));
  EXPECT_LT(std::ranges::count(served.callers, "uid 7"), 8);
  for (auto& client : clients)
    served.watch(client, [&] {
      if (std::ranges::all_of(clients, [](const auto& one) { return !one.read.empty(); })) served.loop.stop();
    });
  served.loop.run();
  EXPECT_EQ(std::ranges::count(served.callers, "uid 7"), 8) << "each request is answered eventually";
  EXPECT_EQ(std::ranges::count_if(clients, &Served::Client::closed), 0);
}

TEST(Server, limits_the_total_size_of_unread_responses) {
  Users users;
  Server::Hooks hooks = users.hooks(64);
  hooks.held_bytes = 3 * large_bytes;
  Served served(1000, std::move(hooks));
  std::vector<Served::Client> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(answer_to(served, users, 7, "/large"));
  users.later_ns = slow_reader_ns + os::second;
  for (int i = 0; i < 3; ++i) clients.push_back(answer_to(served, users, 8, "/large"));
  for (size_t i = 0; i < clients.size(); ++i) EXPECT_EQ(is_closed(clients[i]), i < 3) << i;
}

TEST(Server, limits_the_total_size_of_incomplete_requests) {
  Served served(1000, limits(10, 100'000));
  const std::string half = "POST / HTTP/1.1\r\nContent-Length: 60000\r\n\r\n" + std::string(40'000, 'x');
  std::vector<Served::Client> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(served.connect(half));
  for (auto& client : clients)
    served.watch(client, [&] {
      if (std::ranges::count_if(clients, &Served::Client::closed) == 2) served.loop.stop();
    });
  served.loop.run();
  EXPECT_EQ(std::ranges::count_if(clients, &Served::Client::closed), 2);
}

TEST(Server, closes_a_late_connection_by_a_virtual_clock) {
  Served served(1000);
  auto client = served.connect("GET / HT");
  served.watch(client, [&] { served.loop.stop(); });
  served.loop.every(os::millisecond, [&] { served.server->tick(os::monotonic_ns() + 60 * os::second); });
  served.loop.run();
  EXPECT_TRUE(client.closed);
}

}  // namespace
}  // namespace carve::http
