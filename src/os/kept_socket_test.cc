#include "os/kept_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/socket.h"

namespace carve::os {
namespace {

struct SocketFolder {
  std::filesystem::path path;
  SocketFolder() {
    char name[] = "/tmp/carve-kept-XXXXXX";
    path = mkdtemp(name);
  }
  ~SocketFolder() { std::filesystem::remove_all(path); }
};

TEST(KeptSocket, is_recreated_after_it_was_removed_or_replaced) {
  const SocketFolder folder;
  const std::string path = folder.path / "s";
  const auto make = [&] { return listen_at(path, SOCK_STREAM, 0600); };
  Fd listener = std::move(*make());
  KeptSocket kept(path, make, [&](Fd fresh) { listener = std::move(fresh); });
  EXPECT_FALSE(kept.check());

  unlink(path.c_str());
  EXPECT_FALSE(connect_to(path, SOCK_STREAM));
  EXPECT_EQ(kept.check(), "the socket " + path + " was removed and has been recreated");
  EXPECT_TRUE(connect_to(path, SOCK_STREAM));
  EXPECT_FALSE(kept.check());

  const auto another = listen_at(path, SOCK_STREAM, 0600);
  EXPECT_EQ(kept.check(), "the socket " + path + " was replaced and has been recreated");
  EXPECT_FALSE(kept.check());

  // A file that is not a socket is left alone. This is reported once, and the removal of the file is noticed.
  unlink(path.c_str());
  std::ofstream(path) << "text";
  ASSERT_TRUE(kept.check());
  EXPECT_FALSE(kept.check());
  unlink(path.c_str());
  EXPECT_TRUE(kept.check());
  EXPECT_TRUE(connect_to(path, SOCK_STREAM));
}

}  // namespace
}  // namespace carve::os
