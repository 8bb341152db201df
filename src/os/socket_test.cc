#include "os/socket.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

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

// Returns whether the peer of a socket pair is in the group, in a process with these groups. The peer is the process
// that made the pair.
bool is_member(gid_t effective, std::vector<gid_t> supplementary, gid_t group) {
  const pid_t child = fork();
  if (child == 0) {
    int ends[2];
    const bool ready = setgroups(supplementary.size(), supplementary.data()) == 0 &&
                       setegid(effective) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0;
    _exit(!ready ? 2 : is_peer_in_group(ends[0], group) ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 2);
  return WEXITSTATUS(status) == 1;
}

TEST(PeerOfSocket, is_in_its_effective_and_supplementary_groups_only) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can set the groups of a process";
  EXPECT_TRUE(is_member(4242, {}, 4242));
  EXPECT_TRUE(is_member(1, {7, 4242}, 4242));
  EXPECT_FALSE(is_member(1, {7, 8}, 4242));
  EXPECT_FALSE(is_member(1, {}, 4242));
  std::vector<gid_t> many;
  for (gid_t gid = 5000; gid < 15000; ++gid) many.push_back(gid);
  EXPECT_TRUE(is_member(1, many, 14999));
  EXPECT_FALSE(is_member(1, many, 4242));
}

TEST(PeerOfSocket, is_in_no_group_if_the_file_is_no_socket) {
  const Fd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(is_peer_in_group(file.get(), getegid()));
}

}  // namespace
}  // namespace carve::os
