#include "os/input_file.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace carve::os {
namespace {

using testing::StartsWith;

TEST(InputFile, is_read_completely_or_rejected_with_a_reason) {
  char name[] = "/tmp/carve-input-XXXXXX";
  const std::string folder = mkdtemp(name);
  std::ofstream(folder + "/full") << "12345";
  std::ofstream(folder + "/empty").flush();
  EXPECT_EQ(read_input(folder + "/full", 5).value_or(""), "12345");
  EXPECT_EQ(read_input(folder + "/empty", 5).value_or("no"), "");
  EXPECT_EQ(read_input(folder + "/full", 4).error(), folder + "/full: is larger than 4 bytes; split it");
  EXPECT_THAT(
      read_input(folder, 5).error(),
      StartsWith(folder + ": cannot be read: it is a directory; use a file, or - for standard input"));
  EXPECT_THAT(read_input(folder + "/none", 5).error(), StartsWith(folder + "/none: cannot be read: No such"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace carve::os
