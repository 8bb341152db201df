#include "node/pages/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <filesystem>

namespace carve::node {
namespace {

struct Directory {
  std::filesystem::path path;
  Directory() {
    char name[] = "/tmp/carve-pages-XXXXXX";
    path = mkdtemp(name);
  }
  ~Directory() { std::filesystem::remove_all(path); }
};

TEST(SharedMemory, has_a_report_page_whose_size_cannot_change) {
  const auto report = make_report();
  ASSERT_TRUE(report);
  EXPECT_NE(ftruncate(report->fd.get(), 0), 0);
  EXPECT_NE(ftruncate(report->fd.get(), 1 << 30), 0);
  EXPECT_NE(fcntl(report->fd.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_TRUE(adopt_report(os::Fd(dup(report->fd.get()))));
}

TEST(Pages, do_not_adopt_another_descriptor_as_a_report) {
  const int plain = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(plain, sizeof(shm::Report)), 0);
  EXPECT_FALSE(adopt_report(os::Fd(plain)));
  const int shorter = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(shorter, offsetof(shm::Report, work)), 0);
  ASSERT_EQ(fcntl(shorter, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_FALSE(adopt_report(os::Fd(shorter)));
  EXPECT_FALSE(adopt_report(os::Fd(open("/dev/null", O_RDWR))));
}

TEST(SharedMemory, passes_a_control_page_that_shows_the_agents_writes_and_is_read_only) {
  Directory dir;
  auto runtime = RuntimeDir::open(dir.path / "run");
  ASSERT_TRUE(runtime) << runtime.error().message;
  auto control = runtime->make_control("a");
  ASSERT_TRUE(control) << control.error().message;
  const os::Fd fd = runtime->control_descriptor("a");
  ASSERT_TRUE(fd);
  (*control)->devices[0].quota = 77;
  const auto* seen = static_cast<const shm::Control*>(
      mmap(nullptr, sizeof(shm::Control), PROT_READ, MAP_SHARED, fd.get(), 0));
  ASSERT_NE(seen, MAP_FAILED);
  EXPECT_EQ(seen->devices[0].quota, 77u);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0), MAP_FAILED);
  EXPECT_NE(mprotect(const_cast<shm::Control*>(seen), 4096, PROT_READ | PROT_WRITE), 0);
  EXPECT_NE(ftruncate(fd.get(), 0), 0);
  EXPECT_EQ(runtime->sealed(), geteuid() == 0);
  if (!runtime->sealed()) return;
  // Even root cannot make it writable, not even through /proc.
  const std::string again = "/proc/self/fd/" + std::to_string(fd.get());
  EXPECT_LT(open(again.c_str(), O_RDWR), 0);
  EXPECT_EQ(errno, EROFS);
  EXPECT_NE(truncate(again.c_str(), 0), 0);
  EXPECT_NE(fchmod(fd.get(), 0666), 0);
}

TEST(SharedMemory, is_found_by_the_next_agent) {
  Directory dir;
  {
    auto runtime = RuntimeDir::open(dir.path / "run");
    auto control = runtime->make_control("a");
    (*control)->device_count = 3;
    ASSERT_TRUE(runtime->write_state_file("a", "its story"));
  }
  auto runtime = RuntimeDir::open(dir.path / "run");
  auto control = runtime->adopt_control("a");
  ASSERT_TRUE(control);
  EXPECT_EQ((*control)->device_count, 3u);
  EXPECT_EQ(runtime->read_state_file("a"), "its story");
  EXPECT_THAT(runtime->state_files(), testing::ElementsAre("a"));
  (*control)->layout = 99;
  EXPECT_FALSE(runtime->adopt_control("a"));
  runtime->remove("a");
  EXPECT_FALSE(runtime->adopt_control("a"));
  EXPECT_TRUE(runtime->state_files().empty());
}

TEST(SharedMemory, is_rejected_in_a_directory_that_others_may_enter) {
  Directory dir;
  std::filesystem::create_directory(dir.path / "run");
  chmod((dir.path / "run").c_str(), 0755);
  const auto runtime = RuntimeDir::open(dir.path / "run");
  ASSERT_FALSE(runtime);
  EXPECT_THAT(runtime.error().message, testing::HasSubstr("0700"));
}

}  // namespace
}  // namespace carve::node
