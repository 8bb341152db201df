#include "node/cdi/host_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "os/directory.h"
#include "os/process.h"

namespace carve::node {
namespace {

namespace fs = std::filesystem;

// The directories of the driver's libraries in Debian, in Red Hat and in NVIDIA's driver containers.
constexpr const char* driver_dirs[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/lib/x86_64-linux-gnu",
                                       "/lib64", "/usr/lib"};
constexpr int max_links = 16;
constexpr size_t max_library_bytes = 64 << 20;  // Limit for Carve's libraries; the preload has 1 MB.

// Resolves links as the host would, for which `root` is "/". Returns a path in the agent's namespace.
std::string resolved_below(const std::string& root, std::string path) {
  for (int links = 0; links < max_links; ++links) {
    std::error_code problem;
    const fs::path target = fs::read_symlink(root + path, problem);
    if (problem) return access((root + path).c_str(), R_OK) == 0 ? root + path : "";
    path = (target.is_absolute() ? target : fs::path(path).parent_path() / target).lexically_normal();
    if (!path.starts_with('/') || path.starts_with("/..")) return "";
  }
  return "";
}

Outcome<void> copy(const std::string& from, const std::string& to) {
  const auto text = os::read_file(from, max_library_bytes);
  if (!text || text->size() >= max_library_bytes)
    return failure(FailureKind::unavailable, "cannot read {} for --libraries: {}", from, strerror(errno));
  if (const auto there = os::read_file(to, max_library_bytes); there && *there == *text) return {};
  return os::replace_file(to, *text, 0755);
}

}  // namespace

std::string find_below(const std::string& root, const std::string& library) {
  for (const char* dir : driver_dirs)
    if (std::string found = resolved_below(root, std::string(dir) + "/" + library); !found.empty())
      return found;
  return "";
}

std::string on_host(const std::string& path, const std::string& root) {
  return !root.empty() && path.starts_with(root + "/") ? path.substr(root.size()) : path;
}

Outcome<Paths> install_libraries(Paths paths, const std::string& folder, const std::string& version) {
  const std::string base = folder + "/" + version;
  for (const std::string& dir : {base + "/shim", base + "/sim"})
    if (const auto made = os::make_directory(dir, 0755); !made)
      return failure(FailureKind::unavailable, "--libraries {}: {}", folder, made.error().message);
  std::vector<std::pair<std::string, std::string>> files = {{paths.preload, base + "/libcarve.so"}};
  for (const char* name : {"libcuda.so.1", "libnvidia-ml.so.1"})
    files.emplace_back(paths.shims + "/" + name, base + "/shim/" + name);
  if (!paths.sim_set.empty()) {
    files.emplace_back(paths.libcuda, base + "/sim/libcuda.so.1");
    files.emplace_back(paths.libnvml, base + "/sim/libnvidia-ml.so.1");
    paths.driver = base + "/sim";
    paths.libcuda = files[3].second;
    paths.libnvml = files[4].second;
  }
  for (const auto& [from, to] : files)
    if (const auto copied = copy(from, to); !copied) return tl::unexpected(copied.error());
  paths.preload = files[0].second;
  paths.shims = base + "/shim";
  return paths;
}

}  // namespace carve::node
