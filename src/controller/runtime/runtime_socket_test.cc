#include "controller/runtime/runtime_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <filesystem>
#include <functional>
#include <latch>
#include <thread>

#include "os/socket.h"

namespace carve::controller {
namespace {

using testing::HasSubstr;

// Listens at a socket and calls `serve` with each connection.
class Listener {
 public:
  explicit Listener(std::function<void(int fd)> serve) {
    char name[] = "/tmp/carve-runtime-XXXXXX";
    folder_ = mkdtemp(name);
    listener_ = *os::listen_at(path(), SOCK_STREAM, 0600);
    const int fd = listener_.get();
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);  // The thread waits in accept4().
    thread_ = std::thread([fd, serve = std::move(serve)] {
      for (int client; (client = accept4(fd, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; close(client))
        serve(client);
    });
  }
  ~Listener() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    std::filesystem::remove_all(folder_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::string path() const { return folder_ + "/s"; }

 private:
  std::string folder_;
  os::Fd listener_;
  std::thread thread_;
};

// Reads until the client shuts down its writing side.
std::string read_all(int fd) {
  std::string text;
  char bytes[512];
  for (ssize_t count; (count = read(fd, bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<size_t>(count));
  return text;
}

TEST(RuntimeSocket, returns_an_answer_when_the_connection_closes) {
  const Listener listener([](int fd) {
    const std::string answer = "got " + read_all(fd);
    for (const char c : answer) (void)send(fd, &c, 1, MSG_NOSIGNAL);
  });
  const RuntimeSocket socket(listener.path());
  EXPECT_EQ(socket.ask("show proc").value_or("none"), "got show proc\n");
  EXPECT_EQ(socket.ask("@!12 del server a:b/c.1").value_or("none"), "got @!12 del server a:b/c.1\n");
}

TEST(RuntimeSocket, rejects_text_that_would_be_two_commands) {
  const RuntimeSocket socket("/nowhere");
  for (const char* command : {"", "a;b", "a\nb", "a\\;b", "a\tb", "a\x7f"}) {
    const auto answer = socket.ask(command);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, FailureKind::invalid_argument);
  }
}

TEST(RuntimeSocket, gives_up_on_a_silent_process) {
  std::latch asked(1);  // The connection stays open until the caller has given up.
  const Listener listener([&](int) { asked.wait(); });
  const RuntimeSocket silent(listener.path(), 0);
  const auto answer = silent.ask("show proc");
  asked.count_down();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, FailureKind::unavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("did not respond to 'show' within 0 ms"));
}

TEST(RuntimeSocket, rejects_an_endless_answer) {
  const Listener listener([](int fd) {
    const std::string bytes(1 << 16, 'x');
    while (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) continue;
  });
  const auto answer = RuntimeSocket(listener.path(), 60 * os::second).ask("show stat");
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("more than 16777216 bytes"));
}

TEST(RuntimeSocket, fails_with_not_found_if_no_process_listens) {
  const RuntimeSocket socket("/tmp/carve-no-such-socket");
  EXPECT_EQ(socket.ask("show proc").error().kind, FailureKind::not_found);
  EXPECT_EQ(socket.listener().error().kind, FailureKind::not_found);
}

TEST(RuntimeSocket, identifies_the_listening_process) {
  const Listener listener([](int) {});
  const auto process = RuntimeSocket(listener.path()).listener();
  ASSERT_TRUE(process);
  EXPECT_EQ(*process, os::stat_of(getpid())->id);
}

}  // namespace
}  // namespace carve::controller
