#include "node/slice/evidence.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "os/process.h"

namespace carve::node {
// Compares the file, because any process can take the name.
bool is_mps_server(pid_t pid) {
  struct stat runs {
  }, server{};
  return stat(fmt::format("/proc/{}/exe", pid).c_str(), &runs) == 0 &&
         stat("/usr/bin/nvidia-cuda-mps-server", &server) == 0 && runs.st_dev == server.st_dev &&
         runs.st_ino == server.st_ino;
}

ProcessEvidence evidence_of(pid_t pid) {
  const std::string folder = fmt::format("/proc/{}", pid);
  const std::string maps = os::read_file(folder + "/maps", 4 << 20).value_or("");
  const std::string environment = os::read_file(folder + "/environ").value_or("");
  const auto has = [](const std::string& where, std::string_view text) {
    return where.find(text) != std::string::npos;
  };
  ProcessEvidence seen;
  seen.our_library = has(maps, "/libcarve.so") || has(maps, "/lib/carve/shim/");
  seen.the_driver = has(maps, "/libcuda.so");
  seen.loader = has(maps, "/ld-linux") || has(maps, "/ld-musl") || has(maps, "/ld-2.");
  seen.preload_asked = has(environment, "libcarve.so");
  seen.is_mps_server = is_mps_server(pid);
  return seen;
}

}  // namespace carve::node
