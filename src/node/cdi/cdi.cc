#include "node/cdi/cdi.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "node/cdi/host_files.h"
#include "os/fd.h"
#include "os/socket.h"
#include "wire/api/json_value.h"
#include "wire/shm/attach.h"

namespace carve::node {
namespace {

using api::Json;

// The library directories of Debian and Red Hat. An image has one of them; an additional file in the other
// one is harmless.
constexpr const char* library_dirs[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"};
constexpr const char* driver_dir = "/usr/lib/carve/driver";
constexpr const char* set_dir = "/run/simgpu";
// CUDA's base images set NVIDIA_VISIBLE_DEVICES=all. If NVIDIA's runtime is the engine's default, it would
// give such a container all devices and mount the driver's libraries again. With `void` it behaves like runc
// (NVIDIA Container Toolkit, "GPU Enumeration"); NVIDIA's own CDI files set the same value.
constexpr const char* no_whole_devices = "NVIDIA_VISIBLE_DEVICES=void";

std::string file_of(const std::string& directory, const std::string& slice) {
  return directory + "/carve.dev-slice_" + slice + ".json";
}
std::string file_of(const std::string& directory, const AttachPoint& point) {
  const char* const kind = point.kind == AttachPoint::Kind::slot ? "slot" : "claim";
  return fmt::format("{}/carve.dev-{}_{}.json", directory, kind, point.name);
}

// The directory of the default socket. In containers the attach directory is mounted there, and contains a
// socket with the same file name.
std::string inside_directory() {
  const std::string inside = shm::default_socket;
  return inside.substr(0, inside.rfind('/'));
}
std::string attach_socket_in(const std::string& directory) {
  return directory + std::string(shm::default_socket).substr(inside_directory().size()) + shm::attach_suffix;
}

// Returns the file that the loader finds for this library; empty if there is none.
std::string loaded_path(const std::string& library) {
  if (library.find('/') != std::string::npos) return library;
  void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return "";
  const link_map* map = nullptr;
  std::string path;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path = map->l_name;
  dlclose(handle);
  char whole[4096];
  return realpath(path.c_str(), whole) != nullptr ? whole : path;
}

using Mounts = std::vector<api::ContainerMount>;

Json json_of(const Mounts& mounts) {
  Json out = Json::array();
  for (const api::ContainerMount& mount : mounts)
    out.push_back({{"hostPath", mount.host_path},
                   {"containerPath", mount.container_path},
                   {"options", {mount.writable ? "rw" : "ro", "nosuid", "nodev", "bind"}}});
  return out;
}

// Programs such as vLLM parse the words as numbers; the guest library counts only the slice's devices.
std::string numbered_devices(const Slice& granted) {
  std::string out;
  for (size_t i = 0; i < granted.parts.size(); ++i) out += fmt::format("{}{}", i == 0 ? "" : ",", i);
  return out;
}

// Returns the host's path of a driver library that the loader finds by its name; empty if there is none.
std::string driver_path(const std::string& library, const Paths& paths) {
  if (paths.driver_root.empty() || library.find('/') != std::string::npos)
    return on_host(loaded_path(library), paths.driver_root);
  return on_host(find_below(paths.driver_root, library), paths.driver_root);
}

Mounts mounts_of(const std::string& directory, const Paths& paths) {
  Mounts out;
  for (const char* dir : library_dirs)
    for (const char* name : {"libcuda.so.1", "libnvidia-ml.so.1"})
      out.push_back({paths.shims + "/" + name, std::string(dir) + "/" + name});
  const std::pair<const std::string&, const char*> driver[] = {{paths.libcuda, "libcuda.so.1"},
                                                               {paths.libnvml, "libnvidia-ml.so.1"}};
  for (const auto& [library, name] : driver)
    if (const std::string path = driver_path(library, paths); !path.empty())
      out.push_back({path, std::string(driver_dir) + "/" + name});
  // The driver's library opens these files by name when it compiles PTX.
  if (paths.sim_set.empty())
    for (const char* companion :
         {"libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4", "libnvidia-gpucomp.so"})
      if (const std::string path = driver_path(companion, paths); !path.empty())
        for (const char* dir : library_dirs) out.push_back({path, std::string(dir) + "/" + companion});
  out.push_back({directory, inside_directory()});
  if (!paths.sim_set.empty()) out.push_back({paths.sim_set, set_dir, true});
  return out;
}

// Returns the devices and files that the driver's library opens.
std::vector<std::string> device_nodes(const std::vector<unsigned>& minors) {
  std::vector<std::string> out;
  for (const char* common : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"})
    if (access(common, F_OK) == 0) out.emplace_back(common);
  for (const unsigned minor : minors) out.push_back(fmt::format("/dev/nvidia{}", minor));
  return out;
}

// Returns the container's edits: the slice's devices, its libraries and this attach directory.
Json edits_of(const Slice& granted, const std::string& directory, const Paths& paths,
              const std::vector<unsigned>& minors) {
  Json edits = {{"env", {"CUDA_VISIBLE_DEVICES=" + numbered_devices(granted), no_whole_devices}},
                {"mounts", json_of(mounts_of(directory, paths))}};
  if (minors.empty()) return edits;
  edits["deviceNodes"] = Json::array();
  for (const std::string& path : device_nodes(minors)) edits["deviceNodes"].push_back({{"path", path}});
  return edits;
}

// Returns the text of a file with one device.
std::string spec_of(const char* kind, const std::string& device, const Json& edits) {
  const Json spec = {
      {"cdiVersion", "0.3.0"}, {"kind", kind}, {"devices", {{{"name", device}, {"containerEdits", edits}}}}};
  return spec.dump(2) + "\n";
}

Outcome<void> write_spec(const std::string& directory, const std::string& path, const std::string& spec) {
  if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST)
    return failure(FailureKind::unavailable,
                   "cannot create the CDI directory {}: {}; choose another with --cdi-dir", directory,
                   strerror(errno));
  const std::string fresh = path + ".new";
  const os::Fd file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file || write(file.get(), spec.data(), spec.size()) != static_cast<ssize_t>(spec.size()) ||
      rename(fresh.c_str(), path.c_str()) != 0) {
    const int wrong = errno;
    unlink(fresh.c_str());
    return failure(FailureKind::unavailable, "cannot write {}: {}; choose another directory with --cdi-dir",
                   path, strerror(wrong));
  }
  return {};
}

}  // namespace

std::string attach_directory(const std::string& socket) { return socket + ".run/attach"; }

std::string attach_directory(const std::string& socket, const AttachPoint& point) {
  return attach_directory(socket) + "/" + point.name;
}

Outcome<os::Fd> listen_in(const std::string& socket, const AttachPoint& point) {
  const std::string directory = attach_directory(socket, point);
  for (const std::string& path : {attach_directory(socket), directory})
    if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
      return failure(FailureKind::unavailable, "cannot create {}: {}", path, strerror(errno));
  // Binds the socket next to the API's socket, where its path is short, and then moves it, so that processes
  // always find a socket in its place.
  const std::string fresh = socket + "." + point.name;
  auto listener = os::listen_at(fresh, SOCK_SEQPACKET, 0666);
  if (!listener) return listener;
  if (rename(fresh.c_str(), attach_socket_in(directory).c_str()) != 0) {
    const int wrong = errno;
    unlink(fresh.c_str());
    return failure(FailureKind::unavailable, "cannot publish the attach socket in {}: {}", directory,
                   strerror(wrong));
  }
  return listener;
}

void remove_attach_directory(const std::string& socket, const AttachPoint& point) {
  const std::string directory = attach_directory(socket, point);
  unlink(attach_socket_in(directory).c_str());
  rmdir(directory.c_str());
}

Outcome<void> publish_attach_socket(const std::string& socket) {
  const std::string name = attach_socket_in(attach_directory(socket));
  if ((mkdir(attach_directory(socket).c_str(), 0755) != 0 && errno != EEXIST) ||
      (unlink(name.c_str()) != 0 && errno != ENOENT) ||
      link((socket + shm::attach_suffix).c_str(), name.c_str()) != 0)
    return failure(FailureKind::unavailable, "cannot publish the attach socket in {}: {}",
                   attach_directory(socket), strerror(errno));
  return {};
}

bool is_attach_socket_published(const std::string& socket) {
  struct stat bound {
  }, published{};
  return lstat((socket + shm::attach_suffix).c_str(), &bound) == 0 &&
         lstat(attach_socket_in(attach_directory(socket)).c_str(), &published) == 0 &&
         bound.st_dev == published.st_dev && bound.st_ino == published.st_ino;
}

bool has_attach_socket(const std::string& socket, const AttachPoint& point) {
  return access(attach_socket_in(attach_directory(socket, point)).c_str(), F_OK) == 0;
}

std::string cdi_spec(const Slice& granted, const std::string& socket, const Paths& paths,
                     const std::vector<unsigned>& minors) {
  Json edits = edits_of(granted, attach_directory(socket), paths, minors);
  edits["hooks"] = {{{"hookName", "createRuntime"},
                     {"path", paths.programs + "/carve"},
                     {"args", {"carve", "--socket", socket, "hook", granted.name}}}};
  return spec_of(cdi_kind, granted.name, edits);
}

Outcome<void> write_cdi(const std::string& directory, const Slice& granted, const std::string& socket,
                        const Paths& paths, const std::vector<unsigned>& minors) {
  return write_spec(directory, file_of(directory, granted.name), cdi_spec(granted, socket, paths, minors));
}

std::string cdi_spec(const AttachPoint& point, const Slice& granted, const std::string& socket,
                     const Paths& paths, const std::vector<unsigned>& minors) {
  return spec_of(point.kind == AttachPoint::Kind::slot ? slot_cdi_kind : claim_cdi_kind, point.name,
                 edits_of(granted, attach_directory(socket, point), paths, minors));
}

Outcome<void> write_cdi(const std::string& directory, const AttachPoint& point, const Slice& granted,
                        const std::string& socket, const Paths& paths, const std::vector<unsigned>& minors) {
  return write_spec(directory, file_of(directory, point), cdi_spec(point, granted, socket, paths, minors));
}

api::SlotFiles slot_files(ContainerSlot slot, const std::string& socket, const Paths& paths,
                          const std::vector<unsigned>& minors) {
  api::SlotFiles out;
  out.mounts = mounts_of(attach_directory(socket, slot), paths);
  if (!minors.empty()) out.device_nodes = device_nodes(minors);
  return out;
}

void remove_cdi(const std::string& directory, const std::string& slice) {
  unlink(file_of(directory, slice).c_str());
}

void remove_cdi(const std::string& directory, const AttachPoint& point) {
  unlink(file_of(directory, point).c_str());
}

}  // namespace carve::node
