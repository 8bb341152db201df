#include "os/service_watchdog.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>

#include "os/clock.h"
#include "os/fd.h"

namespace carve::os {
namespace {

struct ServiceWatchdogTest : testing::Test {
  void set(const char* interval, const std::string& pid, const char* path) {
    setenv("WATCHDOG_USEC", interval, 1);
    setenv("WATCHDOG_PID", pid.c_str(), 1);
    setenv("NOTIFY_SOCKET", path, 1);
  }
  ~ServiceWatchdogTest() override {
    for (const char* name : {"WATCHDOG_USEC", "WATCHDOG_PID", "NOTIFY_SOCKET"}) unsetenv(name);
  }
};

TEST_F(ServiceWatchdogTest, is_enabled_only_for_the_process_that_it_names) {
  EXPECT_EQ(watchdog_interval_ns(), 0);
  set("2000", std::to_string(getpid()), "");
  EXPECT_EQ(watchdog_interval_ns(), 2 * millisecond);
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(watchdog_interval_ns(), 0) << "this process inherited the variables";
  unsetenv("WATCHDOG_PID");
  EXPECT_EQ(watchdog_interval_ns(), 2 * millisecond);
  for (const char* wrong : {"", "-1", "2 s", "99999999999999999999"}) {
    setenv("WATCHDOG_USEC", wrong, 1);
    EXPECT_EQ(watchdog_interval_ns(), 0) << wrong;
  }
}

TEST_F(ServiceWatchdogTest, receives_reports_while_the_loop_runs) {
  char folder[] = "/tmp/carve-watchdog-XXXXXX";
  const std::string path = std::string(mkdtemp(folder)) + "/s";
  const Fd manager(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(manager.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  set("2000", std::to_string(getpid()), path.c_str());

  Loop loop;
  report_to_watchdog(loop);
  char text[32] = "";
  EXPECT_LT(recv(manager.get(), text, sizeof text, 0), 0) << "the loop has not run";
  loop.every(millisecond, [&] {
    if (recv(manager.get(), text, sizeof text - 1, 0) > 0) loop.stop();
  });
  loop.run();
  EXPECT_STREQ(text, "WATCHDOG=1");
  std::filesystem::remove_all(folder);
}

TEST_F(ServiceWatchdogTest, that_cannot_be_reached_has_no_effect) {
  for (const char* path : {"", "x", "/nowhere/at/all", "@no-such-abstract-name"}) {
    set("2000", std::to_string(getpid()), path);
    Loop loop;
    report_to_watchdog(loop);
    loop.after(5 * millisecond, [&] { loop.stop(); });
    loop.run();
  }
}

}  // namespace
}  // namespace carve::os
