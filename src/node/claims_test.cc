#include "node/claims.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>

namespace carve::node {
namespace {

using testing::HasSubstr;

struct Claims : testing::Test {
  std::string folder = [] {
    char name[] = "/tmp/carve-claims-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  std::vector<Device> devices = std::vector<Device>(2);

  Claims() { devices[1].index = devices[1].uuid.bytes[0] = 1; }
  ~Claims() override { std::filesystem::remove_all(folder); }
  std::string own() const { return folder + "/own"; }
  std::string roots() const { return folder + "/roots"; }
};

TEST_F(Claims, are_held_by_one_agent_and_a_rejection_names_it) {
  {
    const auto first = claim({devices[1]}, own(), roots());
    ASSERT_TRUE(first) << first.error().message;
    const auto second = claim(devices, own(), roots());
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(getpid())));
    EXPECT_THAT(second.error().message, HasSubstr("device 1 (GPU-01"));
  }
  EXPECT_TRUE(claim(devices, own(), roots())) << "a claim ends with its process";
}

TEST_F(Claims, of_root_bind_every_user_but_claims_of_users_do_not_bind_root) {
  const auto of_root = claim({devices[0]}, roots(), roots());
  ASSERT_TRUE(of_root);
  const auto refused = claim(devices, own(), roots());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("root's agent, process " + std::to_string(getpid())));
  const auto of_user = claim({devices[1]}, own(), roots());
  EXPECT_TRUE(of_user);
  EXPECT_TRUE(claim({devices[1]}, roots(), roots()));
}

// Another user can neither open a claim to lock it first nor occupy the file names of earlier releases.
TEST_F(Claims, cannot_be_taken_by_another_user) {
  ASSERT_TRUE(claim(devices, own(), roots()));
  for (const auto& file : std::filesystem::directory_iterator(own())) {
    struct stat info {};
    ASSERT_EQ(stat(file.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 077, 0u) << file.path();
  }
  sockaddr_un squatted{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string name = "carve-" + text(devices[0].uuid);
  name.copy(squatted.sun_path + 1, name.size());
  const os::Fd squatter(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(squatter.get(), reinterpret_cast<const sockaddr*>(&squatted),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())),
            0);
  EXPECT_TRUE(claim(devices, own(), roots()));
}

TEST_F(Claims, are_rejected_in_a_folder_that_others_may_change) {
  ASSERT_EQ(mkdir(own().c_str(), 0700), 0);
  ASSERT_EQ(chmod(own().c_str(), 0777), 0);
  EXPECT_FALSE(claim(devices, own(), roots()));
}

TEST_F(Claims, allow_one_agent_per_simulated_set_whatever_its_path) {
  const std::string set = folder + "/sim", link = folder + "/link";
  ASSERT_EQ(mkdir(set.c_str(), 0755), 0);
  ASSERT_EQ(symlink(set.c_str(), link.c_str()), 0);
  const auto first = claim_set(set);
  ASSERT_TRUE(first);
  const auto second = claim_set(link);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message,
              HasSubstr("process " + std::to_string(getpid()) + ", is using the simulated devices"));
}

TEST_F(Claims, are_not_made_without_a_device) {
  EXPECT_TRUE(claim({}, "/nowhere/at/all", roots()));
  EXPECT_EQ(claims_folder({.uid = 0}), "/run/carve/claims");
  EXPECT_EQ(claims_folder({.uid = 7, .xdg_runtime_dir = "/run/user/7"}), "/run/user/7/carve/claims");
  EXPECT_EQ(claims_folder({.uid = 7}), "/tmp/carve-7/claims");
}

}  // namespace
}  // namespace carve::node
