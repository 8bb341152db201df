// The log files of a program belong to its user, who may write any bytes to them (runner/log_files.h). The
// first byte divides the rest into an older and a newer file. Reading and following must yield the same
// lines, each within its limit.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "own_folder.h"
#include "runner/log_files.h"

namespace {

using namespace carve;

void write_file(const char* name, std::string_view bytes) {
  std::ofstream(own_folder() / name, std::ios::binary) << bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t older = bytes.size() * data[0] / 255;
  write_file("1.log", bytes.substr(0, older));
  write_file("0.log", bytes.substr(older));
  runner::LogFollower follower(own_folder(), ".", {});
  const auto followed = follower.next();
  const auto lines = runner::read_log(own_folder(), ".", {});
  if (lines.size() != followed.size()) abort();
  for (const runner::LogLine& line : lines)
    if (line.text.size() > runner::max_joined_line_bytes + 2 * runner::max_log_line_bytes) abort();
  if (runner::read_log(own_folder(), ".", {.tail = 1}).size() > 1) abort();
  (void)runner::read_log(own_folder(), ".", {.previous = true, .since = "2026"});
  return 0;
}
