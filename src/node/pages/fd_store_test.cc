#include "node/pages/fd_store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "node/pages/shared_memory.h"

namespace carve::node {
namespace {

// An fd store that runs in a plain child process. In production reach() starts it.
struct Kept {
  std::filesystem::path dir;
  pid_t child = 0;
  Kept() {
    char name[] = "/tmp/carve-fdstore-XXXXXX";
    dir = mkdtemp(name);
    child = fork();
    if (child == 0) _exit(run_fd_store(dir));
    for (int i = 0; i < 2000 && !std::filesystem::exists(dir / "fdstore.sock"); ++i) usleep(1000);
  }
  ~Kept() {
    if (child > 0) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    std::filesystem::remove_all(dir);
  }
};

TEST(FdStore, holds_a_report_page_after_the_death_of_its_agent) {
  Kept kept;
  const pid_t agent = fork();
  if (agent == 0) {
    auto fd_store = FdStore::reach(kept.dir);
    auto report = make_report();
    report->page->charges.budget[3].used = 4711;
    if (!fd_store || !fd_store->hold("a", report->fd)) _exit(1);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(agent, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  auto fd_store = FdStore::reach(kept.dir);
  ASSERT_TRUE(fd_store);
  EXPECT_FALSE(fd_store->get("b"));
  const auto report = adopt_report(fd_store->get("a"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->page->charges.budget[3].used, 4711u);
}

TEST(FdStore, ends_when_it_holds_nothing_and_no_agent_is_connected) {
  Kept kept;
  {
    auto fd_store = FdStore::reach(kept.dir);
    ASSERT_TRUE(fd_store);
    ASSERT_TRUE(fd_store->hold("a", make_report()->fd));
    EXPECT_EQ(waitpid(kept.child, nullptr, WNOHANG), 0);
    ASSERT_TRUE(fd_store->drop("a"));
  }
  int status = 0;
  for (int i = 0; i < 2000 && waitpid(kept.child, &status, WNOHANG) == 0; ++i) usleep(1000);
  EXPECT_TRUE(WIFEXITED(status));
  kept.child = 0;
}

TEST(FdStore, ends_when_no_agent_can_connect_any_more) {
  Kept kept;
  {
    auto fd_store = FdStore::reach(kept.dir);
    ASSERT_TRUE(fd_store);
    ASSERT_TRUE(fd_store->hold("a", make_report()->fd));
  }
  std::filesystem::remove_all(kept.dir);
  int status = 0;
  for (int i = 0; i < 5000 && waitpid(kept.child, &status, WNOHANG) == 0; ++i) usleep(1000);
  EXPECT_TRUE(WIFEXITED(status));
  kept.child = 0;
}

}  // namespace
}  // namespace carve::node
