#include "node/start.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "node/cdi/host_files.h"
#include "node/devices/context_charge.h"
#include "os/log.h"
#include "os/process.h"
#include "os/socket.h"

namespace carve::node {
namespace {

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

struct Ran {
  int status = -1;     // Exit status; -1 if there is none.
  std::string output;  // The first 4 KiB of its output and its errors.
};

// Runs a program and waits for its end.
Ran run(const std::vector<std::string>& words) {
  constexpr size_t max_output_bytes = 4096;
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  os::Fd from(ends[0]), to(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    dup2(to.get(), 1);
    dup2(to.get(), 2);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  to = os::Fd();
  Ran out;
  char part[1024];
  for (ssize_t bytes = 1; child > 0 && bytes > 0;) {
    while ((bytes = read(from.get(), part, sizeof part)) < 0 && errno == EINTR) {}
    if (bytes > 0) out.output.append(part, std::min<size_t>(bytes, max_output_bytes - out.output.size()));
  }
  int status = 0;
  if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)) out.status = WEXITSTATUS(status);
  return out;
}

// Returns the last line of a program's output without the program's name, such as "no profile is named 'a11';
// ...".
std::string reason_of(const Ran& ran) {
  std::string_view text = ran.output;
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (const size_t line = text.rfind('\n'); line != std::string_view::npos) text.remove_prefix(line + 1);
  constexpr std::string_view name = "carve-sim: ";
  if (text.starts_with(name)) text.remove_prefix(name.size());
  return text.empty() ? fmt::format("carve-sim ended with status {}", ran.status) : std::string(text);
}

// Creates the simulated set in `directory` unless it was created from the same `spec`. A set holds the memory
// of running processes, so it must survive the agent.
Outcome<void> make_set(const std::string& tool, const std::string& directory, const std::string& spec) {
  const std::string note = directory + ".spec";
  const std::string wanted =
      spec + "\n" + (access(spec.c_str(), R_OK) == 0 ? os::read_file(spec).value_or("") : "");
  if (access(directory.c_str(), R_OK) == 0 && os::read_file(note).value_or("") == wanted) return {};
  const Ran ran = run({tool, "create", directory, spec});
  if (ran.status == 127)
    return failure(FailureKind::unavailable,
                   "--sim {}: {} is missing; build it with cmake --build build --target carve-sim", spec,
                   tool);
  if (ran.status != 0)
    return failure(ran.status == 2 ? FailureKind::invalid_argument : FailureKind::unavailable, "--sim {}: {}",
                   spec, reason_of(ran));
  fmt::print(stderr, "{}", ran.output);
  const os::Fd file(open(note.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file || write(file.get(), wanted.data(), wanted.size()) != static_cast<ssize_t>(wanted.size()))
    return failure(FailureKind::unavailable, "cannot write {}: {}", note, strerror(errno));
  return {};
}

// Returns the folder, below lib/carve/sim, with the libraries of a simulated set. The set's file `driver`
// contains the driver's number, or 0 for the libraries in lib/carve/sim itself (sim/model/FORMAT.md).
std::string driver_folder(const std::string& set) {
  const unsigned long driver = strtoul(os::read_file(set + "/driver").value_or("").c_str(), nullptr, 10);
  return driver == 0 ? "" : "/" + std::to_string(driver);
}

// If the agent runs in a container, copies Carve's libraries to a folder that the host has at the same path.
Outcome<Paths> with_libraries(Paths paths, const Options& options) {
  if (options.libraries.empty()) return paths;
  return install_libraries(std::move(paths), options.libraries, CARVE_VERSION);
}

// Finds the driver of real devices by its name or, with --driver-root, below the host's root.
Outcome<Paths> find_driver(Paths paths, const Options& options) {
  paths.driver_root = options.driver_root;
  if (!options.driver_root.empty())
    for (std::string* library : {&paths.libcuda, &paths.libnvml}) {
      const std::string found = find_below(options.driver_root, *library);
      if (found.empty())
        return failure(
            FailureKind::unavailable,
            "--driver-root {}: {} was not found below this directory; install NVIDIA's driver on the host",
            options.driver_root, *library);
      *library = found;
    }
  return with_libraries(std::move(paths), options);
}

}  // namespace

Outcome<Paths> find_paths(const Options& options) {
  char self[4096] = "";
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0)
    return failure(FailureKind::unavailable, "cannot read /proc/self/exe: {}", strerror(errno));
  Paths paths;
  paths.programs = directory_of(std::string(self, static_cast<size_t>(length)));
  const std::string ours = directory_of(paths.programs) + "/lib/carve";
  paths.preload = ours + "/libcarve.so";
  paths.shims = ours + "/shim";
  if (options.sim.empty()) return find_driver(std::move(paths), options);
  paths.sim_spec = options.sim;
  paths.sim_set = options.state + "/sim";
  if (const auto made = make_set(paths.programs + "/carve-sim", paths.sim_set, options.sim); !made)
    return tl::unexpected(made.error());
  paths.driver = ours + "/sim" + driver_folder(paths.sim_set);
  paths.libcuda = paths.driver + "/libcuda.so.1";
  paths.libnvml = paths.driver + "/libnvidia-ml.so.1";
  // A simulated set must be as accessible as the /dev of a real device, because every program of a slice uses
  // it. The other files of the state directory are readable only by their owner.
  if (chmod(options.state.c_str(), 0711) != 0)
    return failure(FailureKind::permission_denied, "cannot make {} accessible to programs of other users: {}",
                   options.state, strerror(errno));
  setenv("SIMGPU_DIR", paths.sim_set.c_str(), 1);
  return with_libraries(std::move(paths), options);
}

Outcome<std::vector<NodeDevice>> find_devices(Nvml& nvml, const Options& options, const Paths& paths) {
  std::vector<std::string> said;
  const auto found = nvml.find_devices(options.reserve ? &*options.reserve : nullptr, said);
  for (const std::string& message : said) os::log::error("{}", message);
  if (!found) return tl::unexpected(found.error());
  if (found->empty())
    return failure(FailureKind::unavailable,
                   "the driver reports no device; simulate devices with --sim a10x2");
  std::vector<NodeDevice> out;
  for (const Device& d : *found) {
    NodeDevice device;
    device.device = d;
    device.minor = nvml.minor_of(d.index);
    device.pci_id = nvml.pci_id_of(d.index);
    device.sample.mode = nvml.mode(d.index);
    if (const auto facts = cuda_facts(nvml, d, paths.libcuda, options.state)) {
      device.context = facts->context;
      device.device.migrates = facts->migrates;
      // Managed memory steps concern the whole device and belong to no slice.
      if (!options.reserve) device.device.reserved.count += facts->managed_step.count;
    } else {
      device.context_trouble = facts.error().message;
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
      return failure(FailureKind::invalid_argument, "--topology {}: cannot read the file", options.topology);
    const auto read = place::Topology::read(*matrix, count);
    if (!read)
      return failure(FailureKind::invalid_argument, "--topology {}: {}", options.topology,
                     read.error().message);
    return *read;
  }
  std::vector<unsigned> indexes;
  for (const NodeDevice& d : devices) indexes.push_back(d.device.index);
  const auto wires = nvml.wires(indexes);
  if (wires.empty()) return std::nullopt;
  const auto told = place::Topology::of(count, wires);
  if (told) return *told;
  os::log::warning(
      "{}: the driver's report of the links is contradictory, so it is not used for placement; carved "
      "--topology FILE sets the links",
      told.error().message);
  return std::nullopt;
}

Outcome<os::Fd> open_api(const std::string& path) {
  auto fd = os::listen_at(path, SOCK_STREAM, 0660);
  if (!fd) return fd;
  if (geteuid() == 0)
    if (const group* carve = getgrnam("carve");
        carve != nullptr && chown(path.c_str(), 0, carve->gr_gid) != 0)
      return failure(FailureKind::unavailable, "cannot change the group of {} to carve: {}", path,
                     strerror(errno));
  return fd;
}

}  // namespace carve::node
