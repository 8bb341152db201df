#include "os/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/fd.h"

namespace carve::os {

Result<std::string, std::string> read_input(const std::string& file, size_t most) {
  constexpr std::string_view way_out = "use a file, or - for standard input";
  const bool is_standard = file == "-";
  const auto unreadable = [&](const char* why) {
    return tl::unexpected(fmt::format("{}: cannot be read: {}; {}", file, why, way_out));
  };
  const Fd opened(is_standard ? -1 : open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!is_standard && !opened) return unreadable(std::strerror(errno));
  struct stat seen {};
  if (opened && fstat(opened.get(), &seen) == 0 && S_ISDIR(seen.st_mode))
    return unreadable("it is a directory");
  const int fd = is_standard ? STDIN_FILENO : opened.get();
  std::string out;
  char block[64 << 10];
  ssize_t got = 0;
  while ((got = read(fd, block, sizeof block)) > 0) {
    out.append(block, static_cast<size_t>(got));
    if (out.size() > most)
      return tl::unexpected(fmt::format("{}: is larger than {} bytes; split it", file, most));
  }
  if (got < 0) return unreadable(std::strerror(errno));
  return out;
}

}  // namespace carve::os
