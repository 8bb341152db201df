#include "node/start.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "node/devices/context_charge.h"
#include "os/log.h"

namespace carve::node {
namespace {

using K = FailureKind;

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Runs a program with its output on standard error and waits. Returns the exit status, or -1.
int run(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(2, 1);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Makes the simulated set in `directory`, unless it was made from the same `spec`. A set holds the memory of
// running processes, so it must survive the agent.
Outcome<void> make_set(const std::string& tool, const std::string& directory, const std::string& spec) {
  const std::string note = directory + ".spec";
  const std::string wanted =
      spec + "\n" + (access(spec.c_str(), R_OK) == 0 ? os::read_file(spec).value_or("") : "");
  if (access(directory.c_str(), R_OK) == 0 && os::read_file(note).value_or("") == wanted) return {};
  const int status = run({tool, "create", directory, spec});
  if (status == 127)
    return failure(K::unavailable,
                   "--sim {}: {} is missing; build it with cmake --build build --target carve-sim", spec,
                   tool);
  if (status != 0)
    return failure(status == 2 ? K::invalid_argument : K::unavailable,
                   "--sim {}: the simulated devices could not be created in {}; the reason is printed above",
                   spec, directory);
  const os::Fd file(open(note.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file || write(file.get(), wanted.data(), wanted.size()) != static_cast<ssize_t>(wanted.size()))
    return failure(K::unavailable, "cannot write {}: {}", note, strerror(errno));
  return {};
}

}  // namespace

Outcome<void> make_directory(const std::string& path, unsigned mode) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (mkdir(path.substr(0, at).c_str(), 0755) != 0 && errno != EEXIST)
      return failure(K::unavailable, "cannot create the directory {}: {}", path.substr(0, at),
                     strerror(errno));
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
    return failure(K::unavailable, "cannot create the directory {}: {}", path, strerror(errno));
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return failure(K::unavailable, "{} is not a directory", path);
  if (access(path.c_str(), W_OK) != 0)
    return failure(K::permission_denied,
                   "no permission to write in {}; choose another directory, or run as its owner", path);
  return {};
}

Outcome<os::Fd> hold_lock(const std::string& path, const std::string& what) {
  os::Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return failure(K::unavailable, "cannot open {}: {}", path, strerror(errno));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    std::string holder = os::read_file(path).value_or("");
    while (!holder.empty() && holder.back() == '\n') holder.pop_back();
    return failure(K::failed_precondition, "another agent, process {}, has {}; stop it first", holder, what);
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd.get(), 0) != 0 || write(fd.get(), pid.data(), pid.size()) < 0)
    return failure(K::unavailable, "cannot write {}: {}", path, strerror(errno));
  return fd;
}

std::vector<std::string> names_of(const std::vector<Device>& devices, const Paths& paths) {
  std::vector<std::string> names;
  struct stat set {};
  if (!paths.sim_set.empty() && stat(paths.sim_set.c_str(), &set) == 0) {
    names.push_back(fmt::format("carve-set-{}-{}", set.st_dev, set.st_ino));
    return names;
  }
  for (const Device& d : devices) names.push_back("carve-" + text(d.uuid));
  return names;
}

Outcome<std::vector<os::Fd>> claim(const std::vector<std::string>& names) {
  std::vector<os::Fd> held;
  for (const std::string& name : names) {
    os::Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, name.data(), std::min(name.size(), sizeof address.sun_path - 2));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (bind(fd.get(), generic, size) == 0 && listen(fd.get(), 1) == 0) {
      held.push_back(std::move(fd));
      continue;
    }
    ucred holder{};
    socklen_t credentials = sizeof holder;
    const os::Fd to(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(to.get(), generic, size) == 0)
      getsockopt(to.get(), SOL_SOCKET, SO_PEERCRED, &holder, &credentials);
    return failure(K::failed_precondition,
                   "another agent, process {}, serves these devices ({}); stop it first",
                   holder.pid != 0 ? std::to_string(holder.pid) : "unknown", name);
  }
  return held;
}

Outcome<Paths> find_paths(const Options& options) {
  char self[4096] = "";
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return failure(K::unavailable, "cannot read /proc/self/exe: {}", strerror(errno));
  Paths paths;
  paths.programs = directory_of(std::string(self, static_cast<size_t>(length)));
  const std::string ours = directory_of(paths.programs) + "/lib/carve";
  paths.preload = ours + "/libcarve.so";
  paths.shims = ours + "/shim";
  if (options.sim.empty()) return paths;
  paths.sim_spec = options.sim;
  paths.sim_set = options.state + "/sim";
  paths.driver = ours + "/sim";
  paths.libcuda = paths.driver + "/libcuda.so.1";
  paths.libnvml = paths.driver + "/libnvidia-ml.so.1";
  if (const auto made = make_set(paths.programs + "/carve-sim", paths.sim_set, options.sim); !made)
    return tl::unexpected(made.error());
  // A simulated set is accessible like /dev of a real device: every program of a slice must reach it. The
  // other files of the state directory are readable by their owner only.
  if (chmod(options.state.c_str(), 0711) != 0)
    return failure(K::permission_denied, "cannot make {} accessible to other users' programs: {}",
                   options.state, strerror(errno));
  setenv("SIMGPU_DIR", paths.sim_set.c_str(), 1);
  return paths;
}

Outcome<std::vector<NodeDevice>> find_devices(Nvml& nvml, const Options& options, const Paths& paths) {
  std::vector<std::string> said;
  const auto found = nvml.find_devices(options.reserve ? &*options.reserve : nullptr, said);
  for (const std::string& sentence : said) os::log::error("{}", sentence);
  if (!found) return tl::unexpected(found.error());
  if (found->empty())
    return failure(K::unavailable, "the driver reports no device; simulate devices with --sim a10x2");
  std::vector<NodeDevice> out;
  for (const Device& d : *found) {
    NodeDevice device;
    device.device = d;
    device.minor = nvml.minor_of(d.index);
    if (const auto facts = cuda_facts(nvml, d, paths.libcuda, options.state)) {
      device.context = facts->context;
      device.device.migrates = facts->migrates;
    } else {
      device.context_trouble = facts.error().sentence;
    }
    os::log::info("device {}: found {}, {}, {} usable of {}, context size {}", d.index, d.name, text(d.uuid),
                  text(d.usable()).c_str(), text(d.native).c_str(),
                  device.context.count != 0 ? text(device.context).c_str() : device.context_trouble.c_str());
    out.push_back(std::move(device));
  }
  return out;
}

Outcome<std::optional<place::Topology>> find_topology(const Nvml& nvml, const Options& options,
                                                      const std::vector<NodeDevice>& devices) {
  const auto count = static_cast<unsigned>(devices.size());
  if (!options.topology.empty()) {
    const auto matrix = os::read_file(options.topology, 1 << 20);
    if (!matrix)
      return failure(K::invalid_argument, "--topology {}: the file cannot be read", options.topology);
    const auto read = place::Topology::read(*matrix, count);
    if (!read)
      return failure(K::invalid_argument, "--topology {}: {}", options.topology, read.error().sentence);
    return *read;
  }
  std::vector<unsigned> indexes;
  for (const NodeDevice& d : devices) indexes.push_back(d.device.index);
  const auto wires = nvml.wires(indexes);
  if (wires.empty()) return std::nullopt;
  const auto told = place::Topology::of(count, wires);
  if (told) return *told;
  os::log::warning(
      "{}: the driver contradicts itself, so its links are not used for placement; carved --topology FILE "
      "sets them",
      told.error().sentence);
  return std::nullopt;
}

Outcome<os::Fd> open_metrics(const std::string& host, uint16_t& port) {
  sockaddr_in6 six{};
  sockaddr_in four{};
  four.sin_family = AF_INET;
  six.sin6_family = AF_INET6;
  four.sin_port = six.sin6_port = htons(port);
  const bool is_four = inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1;
  if (!is_four) inet_pton(AF_INET6, host.c_str(), &six.sin6_addr);
  auto* address = is_four ? reinterpret_cast<sockaddr*>(&four) : reinterpret_cast<sockaddr*>(&six);
  socklen_t size = is_four ? sizeof four : sizeof six;
  os::Fd fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!fd || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd.get(), address, size) != 0 || listen(fd.get(), 64) != 0 ||
      getsockname(fd.get(), address, &size) != 0)
    return failure(K::unavailable, "--metrics-listen {}:{}: {}", host, port, strerror(errno));
  port = ntohs(is_four ? four.sin_port : six.sin6_port);
  return fd;
}

Outcome<os::Fd> open_api(const std::string& path) {
  auto fd = os::listen_at(path, SOCK_STREAM, 0660);
  if (!fd) return fd;
  if (geteuid() == 0)
    if (const group* carve = getgrnam("carve");
        carve != nullptr && chown(path.c_str(), 0, carve->gr_gid) != 0)
      return failure(K::unavailable, "cannot change the group of {} to carve: {}", path, strerror(errno));
  return fd;
}

}  // namespace carve::node
