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

TEST_F(Ports, a_port_is_reserved_once_until_it_is_given_back) {
  PortRegistry a(files()), b(files());
  EXPECT_TRUE(a.reserve(20000));
  EXPECT_FALSE(b.reserve(20000));
  EXPECT_TRUE(b.reserve(20001));
  a.keep(20000, 29999, {20000});
  EXPECT_FALSE(b.reserve(20000));
  a.keep(30000, 31999, {});
  EXPECT_FALSE(b.reserve(20000)) << "ports of other ranges are not regarded";
  a.keep(20000, 29999, {});
  EXPECT_TRUE(b.reserve(20000));
}

TEST_F(Ports, a_controller_that_ends_gives_its_ports_back) {
  PortRegistry b(files());
  {
    PortRegistry a(files());
    EXPECT_TRUE(a.reserve(20000));
  }
  EXPECT_TRUE(b.reserve(20000));
}

TEST_F(Ports, one_of_the_files_is_enough) {
  PortRegistry a({folder / "user"}), b(files());
  EXPECT_TRUE(a.reserve(20000));
  EXPECT_FALSE(b.reserve(20000));
  PortRegistry c({folder / "machine"});
  EXPECT_TRUE(c.reserve(20000)) << "what b could not have completely it gave back";
}

TEST_F(Ports, a_file_that_is_not_regular_is_not_used) {
  std::filesystem::create_symlink("/dev/null", folder / "machine");
  ASSERT_EQ(mkfifo((folder / "user").c_str(), 0600), 0);
  PortRegistry a(files());
  EXPECT_TRUE(a.reserve(20000)) << "without a registry every port may be chosen";
}

}  // namespace
}  // namespace carve::controller
