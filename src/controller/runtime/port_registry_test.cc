#include "controller/runtime/port_registry.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace carve::controller {
namespace {

struct Ports : testing::Test {
  std::filesystem::path folder;
  Ports() {
    char name[] = "/tmp/carve-ports-XXXXXX";
    folder = mkdtemp(name);
  }
  ~Ports() override { std::filesystem::remove_all(folder); }
  std::vector<std::string> files() const { return {folder / "machine", folder / "user"}; }
};

TEST_F(Ports, are_reserved_by_one_controller_until_released) {
  PortRegistry a(files()), b(files());
  EXPECT_TRUE(a.reserve(20000));
  EXPECT_FALSE(b.reserve(20000));
  EXPECT_TRUE(b.reserve(20001));
  a.keep(20000, 29999, {20000});
  EXPECT_FALSE(b.reserve(20000));
  a.keep(30000, 31999, {});
  EXPECT_FALSE(b.reserve(20000)) << "ports of other ranges are ignored";
  a.keep(20000, 29999, {});
  EXPECT_TRUE(b.reserve(20000));
}

TEST_F(Ports, are_released_when_the_controller_ends) {
  PortRegistry b(files());
  {
    PortRegistry a(files());
    EXPECT_TRUE(a.reserve(20000));
  }
  EXPECT_TRUE(b.reserve(20000));
}

TEST_F(Ports, are_reserved_if_one_of_the_files_can_be_used) {
  PortRegistry a({folder / "user"}), b(files());
  EXPECT_TRUE(a.reserve(20000));
  EXPECT_FALSE(b.reserve(20000));
  PortRegistry c({folder / "machine"});
  EXPECT_TRUE(c.reserve(20000)) << "b released what it could not reserve completely";
}

TEST_F(Ports, are_not_reserved_in_a_file_that_is_not_regular) {
  std::filesystem::create_symlink("/dev/null", folder / "machine");
  ASSERT_EQ(mkfifo((folder / "user").c_str(), 0600), 0);
  PortRegistry a(files());
  EXPECT_TRUE(a.reserve(20000)) << "every port may be chosen without a registry";
}

}  // namespace
}  // namespace carve::controller
