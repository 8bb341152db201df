#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "os/beneath.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/loop.h"
#include "os/process.h"
#include "os/socket.h"
#include "os/tcp.h"
#include "os/thread_start.h"

namespace carve::os {
namespace {

using testing::HasSubstr;

TEST(Loop, does_not_call_a_forgotten_handler_even_if_its_event_was_reported) {
  Loop loop;
  const Fd a(eventfd(1, 0)), b(eventfd(1, 0));
  int calls = 0;
  const auto forget_both = [&](uint32_t) {
    ++calls;
    loop.forget(a.get());
    loop.forget(b.get());
  };
  loop.watch(a.get(), EPOLLIN, forget_both);
  loop.watch(b.get(), EPOLLIN, forget_both);
  loop.after(5 * millisecond, [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(calls, 1);
}

TEST(Loop, runs_timers_periodically_or_once) {
  Loop loop;
  int often = 0, once = 0;
  loop.every(2 * millisecond, [&] {
    if (++often == 5) loop.stop();
  });
  loop.after(millisecond, [&] { ++once; });
  loop.run();
  EXPECT_EQ(often, 5);
  EXPECT_EQ(once, 1);
}

TEST(Loop, measures_its_longest_turn) {
  Loop loop;
  loop.after(0, [&] {
    EXPECT_NE(loop.turns().began_ns.load(), 0);
    const int64_t until = monotonic_ns() + 5 * millisecond;
    while (monotonic_ns() < until) {}
    loop.stop();
  });
  loop.run();
  EXPECT_GE(loop.turns().longest_ns.load(), 5 * millisecond);
  EXPECT_EQ(loop.turns().began_ns.load(), 0);
}

TEST(Loop, can_run_again_after_its_end) {
  Loop loop;
  int calls = 0;
  for (int i = 1; i <= 3; ++i) {
    loop.after(0, [&] {
      ++calls;
      loop.stop();
    });
    loop.run();
    EXPECT_EQ(calls, i);
  }
}

TEST(Process, is_found_by_a_pidfd_only_with_its_start_time) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto stat = stat_of(child);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, getpid());
  EXPECT_FALSE(open_process({child, stat->id.start + 1}));
  const Fd pidfd = open_process(stat->id);
  ASSERT_TRUE(pidfd);
  EXPECT_TRUE(alive(pidfd));
  EXPECT_EQ(process_of(pidfd), stat->id);
  send_signal(pidfd, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(alive(pidfd));
  EXPECT_FALSE(process_of(pidfd));
}

TEST(Process, reads_its_own_facts) {
  EXPECT_EQ(inner_pid_of(getpid()), getpid());
  EXPECT_NE(pid_namespace_of(getpid()), 0u);
  EXPECT_FALSE(cgroups_of(getpid()).empty());
  EXPECT_EQ(stat_of(getpid())->name, "os_test");
}

TEST(Socket, knows_its_peer_until_the_peer_has_ended) {
  char name[] = "/tmp/carve-os-XXXXXX";
  const std::filesystem::path dir = mkdtemp(name);
  const auto listener = listen_at(dir / "s", SOCK_SEQPACKET, 0666);
  ASSERT_TRUE(listener) << listener.error().message;
  const pid_t child = fork();
  if (child == 0) {
    const auto c = connect_to(dir / "s", SOCK_SEQPACKET);
    pause();
    _exit(0);
  }
  Fd connection;
  for (int i = 0; i < 1000 && !connection; ++i) {
    connection = Fd(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    usleep(1000);
  }
  const auto peer = peer_of(connection.get());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->process.pid, child);
  EXPECT_EQ(peer->uid, getuid());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(peer_of(connection.get()));
  std::filesystem::remove_all(dir);
}

TEST(Socket, replaces_a_stale_socket_but_not_a_file) {
  char name[] = "/tmp/carve-os-XXXXXX";
  const std::filesystem::path dir = mkdtemp(name);
  { ASSERT_TRUE(listen_at(dir / "s", SOCK_STREAM, 0600)); }
  ASSERT_TRUE(listen_at(dir / "s", SOCK_STREAM, 0600));
  std::ofstream(dir / "file") << "precious";
  const auto refused = listen_at(dir / "file", SOCK_STREAM, 0600);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("is not a socket"));
  EXPECT_TRUE(std::filesystem::exists(dir / "file"));
  const auto too_long = listen_at(dir / std::string(120, 'x'), SOCK_STREAM, 0600);
  ASSERT_FALSE(too_long);
  EXPECT_THAT(too_long.error().message, HasSubstr("at most 107"));
  std::filesystem::remove_all(dir);
}

TEST(Socket, receives_descriptors_and_closes_surplus_ones) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  const Fd left(pair[0]), right(pair[1]), event(eventfd(7, 0));
  const int fds[3] = {event.get(), event.get(), event.get()};
  ASSERT_TRUE(send_with(left.get(), "hello", 5, fds, 3));
  char data[2];
  Fd got[1];
  EXPECT_EQ(receive_with(right.get(), data, sizeof data, got, 1), 5);
  uint64_t value = 0;
  EXPECT_EQ(read(got[0].get(), &value, sizeof value), 8);
  EXPECT_EQ(value, 7u);
}

TEST(Beneath, cannot_be_left_by_any_path) {
  namespace fs = std::filesystem;
  const std::string root = fmt::format("/tmp/carve-beneath-{}", getpid());
  fs::create_directories(root + "/in/a/b");
  for (const char* name : {"/secret", "/in/file", "/in/a/b/file"}) std::ofstream(root + name) << "x";
  fs::create_symlink("../secret", root + "/in/link");
  fs::create_symlink("..", root + "/in/up");
  fs::create_symlink("a", root + "/in/to_a");
  const Fd folder(open((root + "/in").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const auto open : {open_beneath, walk_beneath}) {
    for (const char* good : {"file", "a/b/file", "a/b"}) EXPECT_TRUE(open(folder.get(), good)) << good;
    for (const char* bad : {"", "/", "..", "../secret", "a/../file", "a/../../secret", "/etc/passwd", "link",
                            "up/secret", "to_a/b/file", "a//b", "file/", "file/x", "none", "a/.."})
      EXPECT_FALSE(open(folder.get(), bad)) << bad;
    EXPECT_FALSE(open(folder.get(), std::string("file\0x", 6)));
  }
  fs::remove_all(root);
}

TEST(Directory, is_rejected_if_others_may_change_it) {
  const std::string top = fmt::format("/tmp/carve-directory-{}", getpid());
  const std::string path = top + "/a/b";
  ASSERT_TRUE(make_directory(path, 0700));
  EXPECT_TRUE(make_directory(path, 0700));
  for (const mode_t mode : {0777, 0770, 0702}) {
    chmod(path.c_str(), mode);
    const auto refused = make_directory(path, 0700);
    ASSERT_FALSE(refused) << mode;
    EXPECT_THAT(refused.error().message, testing::HasSubstr("chmod go-w " + path));
  }
  chmod(path.c_str(), 01777);
  EXPECT_TRUE(make_directory(path, 0700)) << "like /tmp";
  chmod(path.c_str(), 0755);
  EXPECT_TRUE(make_directory(path, 0700));
  const std::string link = top + "/link";
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  EXPECT_TRUE(make_directory(link, 0700));
  if (geteuid() == 0) {
    ASSERT_EQ(lchown(link.c_str(), 65534, 65534), 0);
    EXPECT_FALSE(make_directory(link, 0700)) << "the link's owner may point it elsewhere";
    ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
    const auto refused = make_directory(path, 0700);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("belongs to uid 65534"));
  }
  std::filesystem::remove_all(top);
}

TEST(Directory, lock_is_held_by_one_process_which_the_error_names) {
  const std::string path = "/tmp/carve-lock-" + std::to_string(getpid());
  {
    const auto first = hold_lock(path, "agent", "the state x");
    ASSERT_TRUE(first);
    const auto second = hold_lock(path, "agent", "the state x");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message,
              "another agent, process " + std::to_string(getpid()) + ", is using the state x; stop it first");
  }
  EXPECT_TRUE(hold_lock(path, "agent", "the state x"));
  unlink(path.c_str());
}

TEST(Directory, lock_can_be_waited_for_while_its_holder_ends) {
  const std::string path = "/tmp/carve-lock-wait-" + std::to_string(getpid());
  auto first = hold_lock(path, "agent", "the state x");
  ASSERT_TRUE(first);
  EXPECT_FALSE(wait_for_lock(path, "agent", "the state x", 0));
  std::thread ending([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    *first = Fd();
  });
  EXPECT_TRUE(wait_for_lock(path, "agent", "the state x", 600'000'000'000));
  ending.join();
  unlink(path.c_str());
}

TEST(Tcp, parses_a_numeric_address_with_a_port) {
  for (const char* good : {"127.0.0.1:9400", "[::1]:0", "0.0.0.0:65535"}) {
    const auto address = parse_tcp_address(good);
    ASSERT_TRUE(address) << good;
    EXPECT_EQ(text(*address), good);
  }
  for (const char* bad : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.x:1",
                          "localhost:80", "127.0.0.1:80x", "[::1]", "[]:80"})
    EXPECT_FALSE(parse_tcp_address(bad)) << bad;
  EXPECT_TRUE(is_loopback(*parse_tcp_address("127.8.0.1:80")));
  EXPECT_TRUE(is_loopback(*parse_tcp_address("[::1]:80")));
  EXPECT_FALSE(is_loopback(*parse_tcp_address("10.0.0.1:80")));
  EXPECT_FALSE(is_loopback(*parse_tcp_address("[::]:80")));
}

TEST(Tcp, reports_the_user_of_a_local_peer_while_its_socket_is_open) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    TcpAddress address{.host = host, .port = 0};
    const auto listener = listen_at(address);
    if (!listener) continue;  // The machine has no IPv6.
    sockaddr_storage to{};
    socklen_t size = sizeof to;
    ASSERT_EQ(getsockname(listener->get(), reinterpret_cast<sockaddr*>(&to), &size), 0);
    Fd peer(socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const uint32_t uid = geteuid() == 0 ? 4242 : geteuid();
    ASSERT_EQ(fchown(peer.get(), uid, getegid()), 0);  // As if that user had created it.
    ASSERT_EQ(connect(peer.get(), reinterpret_cast<const sockaddr*>(&to), size), 0);
    const Fd accepted(accept(listener->get(), nullptr, nullptr));
    ASSERT_TRUE(accepted);
    EXPECT_EQ(uid_of_local_peer(accepted.get()), uid) << host;
    peer.reset();
    EXPECT_FALSE(uid_of_local_peer(accepted.get())) << "no uid instead of root's";
  }
  EXPECT_FALSE(uid_of_local_peer(-1));
}

TEST(Tcp, chooses_a_free_port_and_names_a_taken_one) {
  TcpAddress first{.host = "127.0.0.1"};
  const auto held = listen_at(first);
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_NE(first.port, 0);
  TcpAddress second = first;
  const auto refused = listen_at(second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, text(first) + ": Address already in use");
}

TEST(StartThread, blocks_all_signals_in_the_thread_and_none_in_its_caller) {
  sigset_t before, of_thread, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  start_thread([&] { pthread_sigmask(SIG_SETMASK, nullptr, &of_thread); }).join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int number : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1}) {
    EXPECT_EQ(sigismember(&of_thread, number), 1) << number;
    EXPECT_EQ(sigismember(&after, number), sigismember(&before, number)) << number;
  }
}

}  // namespace
}  // namespace carve::os
