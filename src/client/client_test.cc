#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <random>

#include "client/testing/agent_stub.h"
#include "wire/api/node.h"
#include "wire/api/slice.h"
#include "wire/api/warning.h"

namespace carve::client {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un out{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(out.sun_path, path.c_str(), sizeof out.sun_path - 1);
  return out;
}

TEST(Client, parses_documents_and_sends_bodies) {
  AgentStub agent(
      {{"GET /v1/version", json_answer(200, R"({"version": "1.2.3", "unknown": 1})")},
       {"POST /v1/slices/a/enter", json_answer(200, R"({"cgroup": true, "environment": {"A": "b"}})")}});
  const Client client(agent.socket());
  const auto version = client.get<api::Version>("/v1/version");
  ASSERT_TRUE(version) << version.error().detail;
  EXPECT_EQ(version->version, "1.2.3");
  const auto entered = client.post<api::Entered>("/v1/slices/a/enter", api::EnterRequest{.command = "x y"});
  ASSERT_TRUE(entered) << entered.error().detail;
  EXPECT_TRUE(entered->cgroup);
  EXPECT_THAT(agent.requests(), ElementsAre("GET /v1/version ", HasSubstr(R"("command":"x y")")));
}

TEST(Client, returns_a_rejection_as_the_agents_problem) {
  AgentStub agent(
      {{"DELETE /v1/slices/a",
        json_answer(404, R"({"type": "carve:not-found", "status": 404, "detail": "there is no slice 'a'"})")},
       {"GET /v1/node", json_answer(500, "not JSON")}});
  const Client client(agent.socket());
  const auto gone = client.remove<api::Slice>("/v1/slices/a");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().type, "carve:not-found");
  EXPECT_EQ(gone.error().detail, "there is no slice 'a'");
  const auto broken = client.get<api::Node>("/v1/node");
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().detail, HasSubstr("refused GET /v1/node with status 500"));
}

TEST(Client, passes_warnings_in_a_response_to_the_program) {
  const std::string body = R"({"version":"1.2.3"})";
  AgentStub agent({{"GET /v1/version",
                    fmt::format("HTTP/1.1 200 OK\r\nWarning: {}\r\nwarning: {}\r\nWarning: 199 x\r\n"
                                "Content-Length: {}\r\n\r\n{}",
                                api::warning_value("a \"b\""), api::warning_value("c"), body.size(), body)}});
  static std::vector<std::string> seen;
  const Client client(agent.socket(), {.warn = [](const std::string& warning) { seen.push_back(warning); }});
  ASSERT_TRUE(client.get<api::Version>("/v1/version"));
  EXPECT_THAT(seen, ElementsAre("a \"b\"", "c"));
}

TEST(Client, names_the_socket_and_a_remedy_if_the_agent_cannot_be_reached) {
  const Client none("/nowhere/carved.sock");
  EXPECT_THAT(none.text("/v1/node").error().detail, HasSubstr("no agent listens at /nowhere/carved.sock"));
  const Client of_node("/nowhere/carved.sock", {.socket_option = "--node NAME=SOCKET"});
  EXPECT_THAT(of_node.text("/v1/node").error().detail,
              EndsWith("set another socket with --node NAME=SOCKET"));
  const Client lengthy("/" + std::string(200, 'x'));
  EXPECT_THAT(lengthy.text("/v1/node").error().detail,
              HasSubstr("has at most 107 bytes, but this one has 201"));
  const std::string ended = fmt::format("/tmp/carve-client-test-{}.sock", getpid());
  ASSERT_EQ(rename(AgentStub({}).socket().c_str(), ended.c_str()), 0);
  EXPECT_THAT(Client(ended).text("/v1/node").error().detail, HasSubstr("exists, but its agent has ended"));
  unlink(ended.c_str());
}

TEST(Client, gives_up_after_its_patience_if_the_agent_does_not_respond) {
  const std::string path = fmt::format("/tmp/carve-silent-{}.sock", getpid());
  const sockaddr_un address = address_of(path);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  const auto silent = Client(path, {.patience = std::chrono::seconds(1)}).text("/v1/node");
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().type, "carve:no-response");
  EXPECT_EQ(silent.error().detail, "the agent at " + path + " did not answer within 1 s; see its log");
  close(listener);
  unlink(path.c_str());
}

// The server is a process of another user that sends correct responses.
TEST(Client, rejects_a_server_of_another_user_before_sending_anything) {
  if (geteuid() != 0) GTEST_SKIP() << "the server changes its user";
  char folder[] = "/tmp/carve-false-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  ASSERT_EQ(chmod(folder, 0777), 0);
  const std::string path = std::string(folder) + "/s";
  int listens[2], received[2];
  ASSERT_EQ(pipe(listens) + pipe(received), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setresgid(4242, 4242, 4242) != 0 || setresuid(4242, 4242, 4242) != 0) _exit(1);
    const sockaddr_un address = address_of(path);
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener, 8) != 0 || write(listens[1], "x", 1) != 1)
      _exit(1);
    const std::string answer = json_answer(200, R"({"version": "1.2.3"})");
    for (int fd; (fd = accept(listener, nullptr, nullptr)) >= 0; close(fd)) {
      char bytes[4096];
      if (read(fd, bytes, sizeof bytes) > 0 && write(received[1], "x", 1) == 1)
        send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(listens[0], &byte, 1), 1);
  const auto refused = Client(path).get<api::Version>("/v1/version");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().type, "carve:untrusted-server");
  EXPECT_EQ(refused.error().detail, "the agent at " + path +
                                        " is a process of uid 4242, which is neither root nor this user; "
                                        "set CARVE_TRUSTED_UIDS=4242 to trust it");
  EXPECT_FALSE(Client(path, {.server = Server::controller}).get<api::Version>("/v1/version"));
  EXPECT_EQ(Client(path).watch("/s", "", [](const StreamEvent&) {}).problem.type, "carve:untrusted-server");
  setenv("CARVE_TRUSTED_UIDS", "4242", 1);
  EXPECT_TRUE(Client(path).get<api::Version>("/v1/version"));
  unsetenv("CARVE_TRUSTED_UIDS");
  ASSERT_EQ(read(received[0], &byte, 1), 1);
  pollfd more{.fd = received[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&more, 1, 0), 0) << "only one request reached the server";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::filesystem::remove_all(folder);
}

// The queue has room for one connection, and the server accepts none until the client waits.
TEST(Client, waits_for_a_server_whose_queue_is_full) {
  const std::string path = fmt::format("/tmp/carve-full-{}.sock", getpid());
  const sockaddr_un address = address_of(path);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 0), 0);
  const int first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(first, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const int second = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ASSERT_EQ(connect(second, reinterpret_cast<const sockaddr*>(&address), sizeof address), -1);
  ASSERT_EQ(errno, EAGAIN);
  std::thread server([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::string answer = json_answer(200, R"({"version": "1.2.3"})");
    close(accept(listener, nullptr, nullptr));
    const int fd = accept(listener, nullptr, nullptr);
    char bytes[4096];
    if (read(fd, bytes, sizeof bytes) > 0) send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    close(fd);
  });
  const auto version = Client(path).get<api::Version>("/v1/version");
  EXPECT_TRUE(version) << version.error().detail;
  server.join();
  const auto silent = Client(path, {.patience = std::chrono::seconds(1)});
  ASSERT_EQ(connect(second, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(silent.text("/v1/node").error().type, "carve:no-response");
  for (const int fd : {first, second, listener}) close(fd);
  unlink(path.c_str());
}

TEST(Client, can_be_used_by_several_threads_concurrently) {
  AgentStub agent({{"GET /v1/version", json_answer(200, R"({"version": "1.2.3"})")}});
  std::atomic<int> answered = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, socket = agent.socket()] {
      for (int i = 0; i < 25; ++i)
        answered += Client(socket).get<api::Version>("/v1/version").has_value() ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, 100);
}

TEST(Client, finds_the_controller_next_to_the_agent) {
  setenv("CARVE_SOCKET", "/x/y/carved.sock", 1);
  EXPECT_EQ(find_controller_socket(""), "/x/y/controller.sock");
  setenv("CARVE_CONTROLLER", "/z", 1);
  EXPECT_EQ(find_controller_socket(""), "/z");
  EXPECT_EQ(find_controller_socket("/flag"), "/flag");
  unsetenv("CARVE_CONTROLLER");
  unsetenv("CARVE_SOCKET");
}

TEST(Client, returns_a_problem_for_hostile_responses) {
  std::mt19937 dice(5);
  const std::string good = json_answer(200, R"({"version": "1.2.3", "pid": 5})");
  std::vector<std::string> answers = {"",
                                      "HTTP/1.1",
                                      "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}",
                                      json_answer(200, "[]"),
                                      json_answer(200, R"({"version": 7})"),
                                      json_answer(200, std::string(100'000, '['))};
  for (int i = 0; i < 30; ++i) {
    answers.push_back(good.substr(0, dice() % good.size()));
    std::string changed = good;
    changed[dice() % 12] = static_cast<char>(dice());
    answers.push_back(changed);
  }
  for (const std::string& answer : answers) {
    AgentStub agent({{"GET /v1/version", answer}});
    SCOPED_TRACE(answer.substr(0, 80));
    const auto version = Client(agent.socket()).get<api::Version>("/v1/version");
    EXPECT_TRUE(version || !version.error().detail.empty()) << answer.substr(0, 60);
  }
}

TEST(Client, delivers_each_event_of_a_watch_and_the_reason_for_its_end) {
  const std::string begin = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
  AgentStub agent(
      {{"GET /v1/events?watch=true", begin + "id: 7-1\ndata: {}\n\n:\n\nid: 7-2\ndata: x\n\ndata: cut"},
       {"GET /gone", json_answer(410, R"({"type": "carve:gone", "status": 410, "detail": "too far back"})")},
       {"GET /list", json_answer(200, R"({"events": []})")},
       {"GET /closed", ""}});
  const Client client(agent.socket());
  std::vector<std::string> ids;
  const auto act = [&](const StreamEvent& e) { ids.push_back(e.id); };
  const WatchEnd ended = client.watch("/v1/events?watch=true", "", act);
  EXPECT_TRUE(ended.opened);
  EXPECT_EQ(ended.problem.type, "carve:no-response");
  EXPECT_THAT(ended.problem.detail, HasSubstr("closed the connection"));
  EXPECT_THAT(ids, ElementsAre("7-1", "7-2"));
  for (const auto& [target, detail] : {std::pair("/gone", "too far back"),
                                       {"/list", "refused GET /list"},
                                       {"/closed", "closed the connection"}}) {
    const WatchEnd refused = client.watch(target, "7-2", act);
    EXPECT_FALSE(refused.opened) << target;
    EXPECT_THAT(refused.problem.detail, HasSubstr(detail));
  }
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_EQ(Client("/nowhere/s").watch("/", "", act).problem.type, "carve:no-agent");
}

TEST(Client, ends_hostile_streams_with_a_problem) {
  const std::string begin = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
  for (const std::string& answer :
       {begin, begin + "\r\n", begin + "\r\ndata: " + std::string(2 << 20, 'x'),
        begin + "Content-Length: 5\r\n\r\ndata:", begin + "Content-Length: 99999999999\r\n\r\ndata:",
        begin + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        begin + "Transfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n0\r\n\r\n"}) {
    AgentStub agent({{"GET /s", answer}});
    EXPECT_FALSE(Client(agent.socket()).watch("/s", "", [](const StreamEvent&) {}).problem.detail.empty());
  }
}

}  // namespace
}  // namespace carve::client
