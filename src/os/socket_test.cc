#include "os/socket.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>

namespace carve::os {
namespace {

unsigned mode_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

struct ListenFolder {
  std::string path = [] {
    char name[] = "/tmp/carve-socket-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  ~ListenFolder() { std::filesystem::remove_all(path); }
};

TEST(ListeningSocket, has_its_mode_whatever_the_umask) {
  const ListenFolder folder;
  for (const unsigned mode : {0600u, 0660u, 0666u}) {
    ASSERT_TRUE(listen_at(folder.path + "/s", SOCK_STREAM, mode));
    EXPECT_EQ(mode_of(folder.path + "/s"), mode);
  }
}

// A controller may begin to listen while another of its threads creates a directory.
TEST(ListeningSocket, does_not_change_the_mode_of_other_files) {
  const ListenFolder folder;
  std::atomic<bool> ends = false;
  std::thread listens([&] {
    while (!ends) EXPECT_TRUE(listen_at(folder.path + "/s", SOCK_STREAM, 0660));
  });
  unsigned wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string made = folder.path + "/" + std::to_string(i);
    ASSERT_EQ(mkdir(made.c_str(), 0700), 0);
    wrong += mode_of(made) != 0700;
  }
  ends = true;
  listens.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace carve::os
