#include "controller/runtime/owner_files.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(OwnerFiles, list_programs_with_a_file_or_a_directory) {
  char name[] = "/tmp/carve-owners-XXXXXX";
  const std::filesystem::path folder = mkdtemp(name);
  const OwnerFiles files(folder / "owners", folder / "programs");
  EXPECT_THAT(files.programs(), IsEmpty());
  const ProgramOwner owner{.kind = "Service", .name = "a", .node = "n1", .port = 20'000};
  ASSERT_TRUE(files.write("a-1-0", owner));
  ASSERT_TRUE(files.write("a-1-0", owner));
  ASSERT_TRUE(files.write("a-1-1", owner));
  std::filesystem::create_directories(folder / "programs/b-1-0");
  std::filesystem::create_directories(folder / "programs/.not-a-program");
  std::ofstream(folder / "owners/a-1-1.json") << "{";
  EXPECT_THAT(files.programs(), ElementsAre("a-1-0", "a-1-1", "b-1-0"));
  EXPECT_EQ(files.read("a-1-0"), owner);
  EXPECT_EQ(files.read("a-1-1"), ProgramOwner{});
  EXPECT_EQ(files.read("b-1-0"), ProgramOwner{});
  files.remove("a-1-1");
  EXPECT_THAT(files.programs(), ElementsAre("a-1-0", "b-1-0"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace carve::controller
