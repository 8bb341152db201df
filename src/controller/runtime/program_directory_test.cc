#include "controller/runtime/program_directory.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace carve::controller {
namespace {

using testing::HasSubstr;

struct ProgramDirectoryTest : testing::Test {
  ProgramDirectoryTest() {
    char name[] = "/tmp/carve-programs-XXXXXX";
    folder = mkdtemp(name);
  }
  ~ProgramDirectoryTest() override { std::filesystem::remove_all(folder); }
  std::filesystem::path folder;
};

TEST(ProgramName, must_be_one_component_that_is_not_hidden) {
  for (const char* good : {"a", "demo-1-0", "a.b"}) EXPECT_TRUE(is_program_name(good)) << good;
  for (const std::string& bad :
       {std::string(), std::string("."), std::string(".."), std::string(".a"), std::string("a/b"),
        std::string("/"), std::string("a\0b", 3), std::string(201, 'a')})
    EXPECT_FALSE(is_program_name(bad)) << bad;
}

TEST_F(ProgramDirectoryTest, belongs_to_the_user_and_is_readable_by_the_controllers_group) {
  const uid_t user = geteuid() == 0 ? 65534 : geteuid();
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(make_program_directory(folder, "a", user));
    struct stat seen {};
    ASSERT_EQ(stat((folder / "a").c_str(), &seen), 0);
    EXPECT_EQ(seen.st_uid, user);
    EXPECT_EQ(seen.st_gid, getegid());
    EXPECT_EQ(seen.st_mode & 07777, 02750u);
    EXPECT_EQ(open_program_directory(folder, "a")->uid, user);
  }
}

TEST_F(ProgramDirectoryTest, is_completed_if_it_was_created_but_not_given_to_the_user) {
  ASSERT_EQ(mkdir((folder / "a").c_str(), 0700), 0);
  ASSERT_TRUE(make_program_directory(folder, "a", geteuid()));
  struct stat seen {};
  ASSERT_EQ(stat((folder / "a").c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 07777, 02750u);
}

TEST_F(ProgramDirectoryTest, is_rejected_if_it_belongs_to_another_user) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a second user";
  ASSERT_TRUE(make_program_directory(folder, "a", 65534));
  const auto made = make_program_directory(folder, "a", 2);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("belongs to the uid 65534"));
}

TEST_F(ProgramDirectoryTest, is_never_a_symbolic_link) {
  std::filesystem::create_symlink("/etc", folder / "a");
  EXPECT_FALSE(make_program_directory(folder, "a", geteuid()));
  EXPECT_FALSE(open_program_directory(folder, "a"));
  EXPECT_FALSE(remove_program_directory(folder, "a"));
}

TEST_F(ProgramDirectoryTest, can_be_missing_when_it_is_removed) {
  const auto none = open_program_directory(folder, "a");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->fd);
  EXPECT_TRUE(remove_program_directory(folder, "a"));
  EXPECT_FALSE(make_program_directory(folder / "none", "a", geteuid()));
}

}  // namespace
}  // namespace carve::controller
