// Uses the real HAProxy. The tests are skipped if it is not installed.
#include "controller/runtime/haproxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "controller/runtime/testing/proxy_traffic.h"

namespace carve::controller {
namespace {

using testing::HasSubstr;
using workload::EndpointState;

bool runs(pid_t pid) {
  const auto stat = os::stat_of(pid);
  return stat && stat->state != 'Z';
}

class HaProxyTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto program = find_program("haproxy"); !program) GTEST_SKIP() << program.error().message;
    char name[] = "/tmp/carve-haproxy-XXXXXX";
    directory_ = mkdtemp(name);
  }
  void TearDown() override {
    if (directory_.empty()) return;
    proxy_.reset();
    const auto stopped = ProxyProcess(directory_, "haproxy").stop();
    EXPECT_TRUE(stopped) << stopped.error().message;
    std::filesystem::remove_all(directory_);
  }

  void open() {
    auto opened = HaProxy::open({.directory = directory_});
    ASSERT_TRUE(opened) << opened.error().message;
    proxy_ = std::move(*opened);
  }
  void apply(const std::vector<DesiredEndpoint>& desired) {
    const auto applied = proxy_->apply(desired);
    ASSERT_TRUE(applied) << applied.error().message;
  }
  std::vector<ObservedServer> observe() {
    const auto observed = proxy_->observe();
    EXPECT_TRUE(observed) << observed.error().message;
    return observed.value_or(ObservedEndpoints()).servers;
  }
  std::vector<RequestFigures> figures_of_all() {
    const auto observed = proxy_->observe();
    EXPECT_TRUE(observed) << observed.error().message;
    return observed.value_or(ObservedEndpoints()).figures;
  }
  EndpointState state_of(const DesiredServer& server) {
    for (const ObservedServer& observed : observe())
      if (observed.replica == server.replica && observed.port == server.port) return observed.state;
    return EndpointState::absent;
  }
  // Calls apply() until the server is gone.
  void withdraw(const std::vector<DesiredEndpoint>& desired, const DesiredServer& server) {
    do apply(desired);
    while (!HasFatalFailure() && state_of(server) != EndpointState::absent);
  }
  ProxyProcesses processes() {
    const auto found = ProxyProcess(directory_, "haproxy").find();
    return found && *found ? **found : ProxyProcesses{};
  }

  std::string directory_;
  std::unique_ptr<HaProxy> proxy_;
};

TEST_F(HaProxyTest, loses_no_request_while_servers_are_replaced_and_haproxy_reloads) {
  open();
  constexpr int cycles = 20;
  std::vector<DesiredEndpoint> desired{{.service = "web", .port = free_port()}};
  std::vector<std::unique_ptr<Replica>> replicas;
  for (int i = 0; i < 2; ++i) replicas.push_back(std::make_unique<Replica>(fmt::format("web-1-{}", i)));
  for (const auto& replica : replicas) desired[0].servers.push_back(replica->desired());
  apply(desired);
  Clients clients(desired[0].port);
  for (int cycle = 0; cycle < cycles; ++cycle) {
    clients.wait_for_requests(static_cast<uint64_t>(cycle) * 5'000 / cycles);
    if (cycle % 6 == 5)  // A new endpoint needs a reload.
      desired.push_back({.service = fmt::format("other-{}", cycle), .port = free_port()});
    replicas.push_back(std::make_unique<Replica>(fmt::format("web-{}-0", cycle + 2)));
    const DesiredServer old = desired[0].servers.front();
    desired[0].servers.erase(desired[0].servers.begin());
    desired[0].servers.push_back(replicas.back()->desired());
    ASSERT_NO_FATAL_FAILURE(withdraw(desired, old));
    replicas.erase(replicas.begin());
  }
  clients.wait_for_requests(5'000);
  EXPECT_EQ(processes().reloads, 3u);
  const auto figures = figures_of_all();
  clients.stop();
  EXPECT_EQ(clients.lost, 0u) << clients.first_loss();
  EXPECT_GE(clients.done, 5'000u);
  ASSERT_EQ(figures.size(), 4u);
  const auto web = std::ranges::find(figures, "web", &RequestFigures::service);
  ASSERT_NE(web, figures.end());
  uint64_t timed = 0;
  for (const uint64_t count : web->latency) timed += count;
  // Workers that ended since the last reading are missing from both.
  EXPECT_GT(timed, web->requests / 2);
  EXPECT_LE(timed, clients.done + clients.lost);
}

TEST_F(HaProxyTest, takes_over_the_haproxy_of_a_program_that_was_killed) {
  Replica first("web-1-0"), second("web-1-1");
  std::vector<DesiredEndpoint> desired{
      {.service = "web", .port = free_port(), .servers = {first.desired(), second.desired()}}};
  int applied[2];
  ASSERT_EQ(pipe(applied), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto proxy = HaProxy::open({.directory = directory_});
    const char good = proxy && (*proxy)->apply(desired) ? 'y' : 'n';
    (void)!write(applied[1], &good, 1);
    for (;;) pause();
  }
  char good = 0;
  ASSERT_EQ(read(applied[0], &good, 1), 1);
  ASSERT_EQ(good, 'y');
  const ProxyProcesses before = processes();
  {
    const auto refused = HaProxy::open({.directory = directory_});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, FailureKind::failed_precondition);
  }
  Clients clients(desired[0].port);
  clients.wait_for_requests(500);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  clients.wait_for_requests(1'000);
  open();
  Replica third("web-2-0");
  const DesiredServer old = desired[0].servers.front();
  desired[0].servers[0] = third.desired();
  withdraw(desired, old);
  clients.wait_for_requests(clients.done + 500);
  clients.stop();
  EXPECT_EQ(clients.lost, 0u) << clients.first_loss();
  EXPECT_EQ(processes(), before);
  close(applied[0]), close(applied[1]);
}

TEST_F(HaProxyTest, drains_a_replica_with_an_open_stream_until_the_stream_ends) {
  open();
  auto streaming = std::make_unique<Replica>("web-1-0");
  const DesiredServer old = streaming->desired();
  std::vector<DesiredEndpoint> desired{{.service = "web", .port = free_port(), .servers = {old}}};
  apply(desired);
  const os::Fd stream = connect_to_port(desired[0].port);
  send_all(stream.get(), "GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_THAT(read_until(stream.get(), "begin\n"), HasSubstr("200 OK"));
  Replica next("web-2-0");
  desired[0].servers = {next.desired()};
  apply(desired);
  EXPECT_EQ(state_of(old), EndpointState::draining);
  EXPECT_EQ(state_of(next.desired()), EndpointState::serving);
  EXPECT_THAT(response_of(desired[0].port), HasSubstr("web-2-0"));
  // After the reload, the stream continues in the old worker and is still visible.
  desired.push_back({.service = "api", .port = free_port()});
  apply(desired);
  EXPECT_EQ(state_of(old), EndpointState::draining);
  EXPECT_EQ(processes().old_workers.size(), 1u);
  streaming->end_stream();
  EXPECT_EQ(read_until(stream.get(), "end\n"), "end\n");
  withdraw(desired, old);
  EXPECT_THAT(response_of(desired[1].port), HasSubstr("503 Service Unavailable"));
}

TEST_F(HaProxyTest, keeps_the_replicas_of_an_old_worker_that_has_an_idle_connection) {
  open();
  auto replica = std::make_unique<Replica>("web-1-0");
  const DesiredServer old = replica->desired();
  std::vector<DesiredEndpoint> desired{{.service = "web", .port = free_port(), .servers = {old}}};
  apply(desired);
  os::Fd client = connect_to_port(desired[0].port);
  send_all(client.get(), post_request);
  EXPECT_THAT(read_until(client.get(), "\n"), HasSubstr("200 OK"));
  desired.push_back({.service = "api", .port = free_port()});
  apply(desired);
  Replica next("web-2-0");
  desired[0].servers = {next.desired()};
  apply(desired);
  apply(desired);
  EXPECT_EQ(state_of(old), EndpointState::draining);
  send_all(client.get(), post_request);
  const std::string response = read_until(client.get(), "web-1-0\n");
  EXPECT_THAT(response, HasSubstr("onnection: close"));
  client.reset();
  withdraw(desired, old);
}

TEST_F(HaProxyTest, reports_a_taken_port_and_applies_the_other_endpoints) {
  open();
  uint16_t taken = 0;
  os::Fd holder = listen_anywhere(taken);
  Replica replica("api-1-0");
  const std::vector<DesiredEndpoint> desired{
      {.service = "web", .port = taken},
      {.service = "api", .port = free_port(), .servers = {replica.desired()}}};
  for (int i = 0; i < 2; ++i) {
    const auto applied = proxy_->apply(desired);
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().kind, FailureKind::failed_precondition);
    EXPECT_THAT(applied.error().message,
                HasSubstr(fmt::format("default:web: HAProxy cannot listen at 127.0.0.1:{}", taken)));
    EXPECT_EQ(proxy_->problem_of("default", "web"), applied.error().message);
    EXPECT_EQ(proxy_->problem_of("default", "api"), "");
    EXPECT_THAT(response_of(desired[1].port), HasSubstr("api-1-0"));
  }
  holder.reset();
  apply(desired);
  EXPECT_EQ(proxy_->problem_of("default", "web"), "");
  EXPECT_THAT(response_of(taken), HasSubstr("503 Service Unavailable"));
}

TEST_F(HaProxyTest, truncates_a_long_log_before_a_reload) {
  open();
  std::vector<DesiredEndpoint> desired{{.service = "web", .port = free_port()}};
  apply(desired);
  const std::string log = directory_ + "/haproxy.log";
  std::filesystem::resize_file(log, max_proxy_log_bytes + 1);
  desired.push_back({.service = "api", .port = free_port()});
  apply(desired);
  EXPECT_EQ(processes().reloads, 1u);
  EXPECT_LT(std::filesystem::file_size(log), 64u << 10);
}

TEST_F(HaProxyTest, restarts_haproxy_after_its_end) {
  open();
  EXPECT_TRUE(proxy_->apply({}));
  EXPECT_EQ(processes().master, 0) << "no endpoint needs it";
  Replica replica("web-1-0");
  const std::vector<DesiredEndpoint> desired{
      {.service = "web", .port = free_port(), .servers = {replica.desired()}}};
  apply(desired);
  const ProxyProcesses before = processes();
  EXPECT_THAT(response_of(desired[0].port), HasSubstr("web-1-0"));
  const auto figures = figures_of_all();
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].requests, 1u);
  EXPECT_EQ(figures[0].responses[1], 1u);
  kill(before.master, SIGKILL);  // The worker ends with it.
  while (runs(before.master) || runs(before.worker)) std::this_thread::yield();
  EXPECT_TRUE(observe().empty());
  apply(desired);
  EXPECT_NE(processes().master, before.master);
  EXPECT_THAT(response_of(desired[0].port), HasSubstr("web-1-0"));
  EXPECT_EQ(figures_of_all().at(0).requests, 2u);
}

TEST(HaProxy, reports_a_missing_program_with_its_package) {
  char name[] = "/tmp/carve-haproxy-XXXXXX";
  const std::string directory = mkdtemp(name);
  auto proxy = HaProxy::open({.directory = directory, .program = "haproxy-that-is-missing"});
  ASSERT_TRUE(proxy);
  EXPECT_TRUE((*proxy)->apply({})) << "HAProxy is not needed without an endpoint";
  const auto applied = (*proxy)->apply({{.service = "web", .port = free_port()}});
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().kind, FailureKind::not_found);
  EXPECT_THAT(applied.error().message, HasSubstr("apt-get install haproxy-that-is-missing"));
  EXPECT_TRUE((*proxy)->observe().value().servers.empty());
  std::filesystem::remove_all(directory);
}

TEST(HaProxy, rejects_a_long_directory_and_invalid_settings) {
  EXPECT_THAT(HaProxy::open({.directory = "/tmp/" + std::string(100, 'a')}).error().message,
              HasSubstr("has 105 characters; HAProxy's sockets allow at most"));
  EXPECT_FALSE(HaProxy::open({.directory = "/tmp/a", .proxy = {.threads = 0}}));
}

}  // namespace
}  // namespace carve::controller
