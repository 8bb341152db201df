#include "node/guard/kernel_guard.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "os/fd.h"

extern "C" const char carve_guard_program[], carve_guard_program_end[];  // program.S.in

namespace carve::node {
namespace {

constexpr long bpffs_magic = 0xcafe4a11;
constexpr const char* bpffs = "/sys/fs/bpf";
constexpr const char* map_names[] = {"members", "limits",     "usage",  "blocks",  "reservations",
                                     "pending", "allocators", "totals", "findings"};
constexpr const char* device_program = "device_rule";
constexpr const char* complete = "complete";  // Pinned last.

struct Attachment {
  const char* program;
  const char* function;  // A function of the kernel, which has BTF, or of the driver.
  bool optional = false;
};
// The id of a cgroup v2 is the inode of its directory.
std::optional<uint64_t> cgroup_id(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return std::nullopt;
  return info.st_ino;
}

// Returns a number that changes when the driver's module is loaded again; 0 if it is not loaded.
uint64_t loaded_driver() {
  struct stat info {};
  return stat("/sys/module/nvidia", &info) == 0 ? info.st_ino : 0;
}

constexpr Attachment module_hooks[] = {{"lsm_ioctl", "bpf_lsm_file_ioctl"},
                                       {"lsm_ioctl_compat", "bpf_lsm_file_ioctl_compat", true}};
constexpr Attachment value_hooks[] = {{"fmod_ioctl", "security_file_ioctl"},
                                      {"fmod_ioctl_compat", "security_file_ioctl_compat", true}};
constexpr Attachment exits[] = {{"ioctl_ends", "__x64_sys_ioctl"},
                                {"ioctl_ends_compat", "__ia32_compat_sys_ioctl", true}};
constexpr Attachment probes[] = {{"allocation_begins", "pmaAllocatePages"},
                                 {"allocation_ends", "pmaAllocatePages"},
                                 {"memory_is_freed", "pmaFreePages"}};

bool is_in_kernel(const btf* kernel, const char* function) {
  return btf__find_by_name_kind(kernel, function, BTF_KIND_FUNC) > 0;
}

// libbpf reports the verifier's log and its own progress; the failures below contain what a user needs.
int ignore_messages(libbpf_print_level, const char*, va_list) { return 0; }

// The agent does not mount bpffs itself: in a mount namespace of its own the pins would end with the agent.
Outcome<void> check_bpffs() {
  struct statfs there {};
  if (statfs(bpffs, &there) == 0 && there.f_type == bpffs_magic) return {};
  return failure(FailureKind::unavailable, "bpffs is not mounted at {}", bpffs);
}

std::string pin_path(const std::string& directory, const char* name) { return directory + "/" + name; }

// Attaches one program and pins its link.
Outcome<void> attach(bpf_object* object, const Attachment& row, const std::string& directory) {
  bpf_program* const program = bpf_object__find_program_by_name(object, row.program);
  bpf_link* link = nullptr;
  const bool is_probe = bpf_program__type(program) == BPF_PROG_TYPE_KPROBE;
  if (is_probe)
    link =
        bpf_program__attach_kprobe(program, std::string_view(row.program).ends_with("_ends"), row.function);
  else
    link = bpf_program__attach(program);
  if (link == nullptr) {
    const int wrong = errno;
    if (is_probe)
      return failure(
          FailureKind::unavailable,
          "cannot attach to the driver's function {}: {}; only NVIDIA's open kernel modules have it",
          row.function, strerror(wrong));
    return failure(FailureKind::unavailable, "cannot attach to the kernel's function {}: {}", row.function,
                   strerror(wrong));
  }
  const int pinned = bpf_link__pin(link, pin_path(directory, row.program).c_str());
  // The pin keeps the attachment. Destroying a connected link would disable a probe, and destroying a
  // disconnected one does not close its descriptor.
  const int fd = bpf_link__fd(link);
  bpf_link__disconnect(link);
  bpf_link__destroy(link);
  close(fd);
  if (pinned != 0)
    return failure(FailureKind::unavailable, "cannot pin {} in {}: {}", row.program, directory,
                   strerror(-pinned));
  return {};
}

template <class Rows>
Outcome<void> attach_all(bpf_object* object, const btf* kernel, const Rows& rows,
                         const std::string& directory) {
  for (const Attachment& row : rows) {
    if (row.optional && !is_in_kernel(kernel, row.function)) continue;
    if (const auto done = attach(object, row, directory); !done) return done;
  }
  return {};
}

// Chooses which programs are loaded: those of one form of the hook whose functions this kernel has.
template <class Rows>
Outcome<void> choose(bpf_object* object, const btf* kernel, const Rows& rows, bool wanted) {
  for (const Attachment& row : rows) {
    const bool is_there = is_in_kernel(kernel, row.function);
    if (wanted && !is_there && !row.optional)
      return failure(FailureKind::unavailable, "the kernel has no function {}", row.function);
    bpf_program__set_autoload(bpf_object__find_program_by_name(object, row.program), wanted && is_there);
  }
  return {};
}

}  // namespace

struct KernelGuard::Descriptors {
  std::map<std::string, os::Fd> maps;
  os::Fd device_program;
  std::vector<os::Fd> programs;  // All that are attached; for their counters.

  int map(const char* name) const { return maps.at(name).get(); }
};

bool KernelGuard::is_built_in() { return true; }

bool KernelGuard::is_pinned(const std::string& directory) {
  return access(pin_path(directory, complete).c_str(), F_OK) == 0;
}

void KernelGuard::remove(const std::string& directory) {
  DIR* const listing = opendir(directory.c_str());
  if (listing == nullptr) return;
  while (const dirent* entry = readdir(listing))
    if (entry->d_name[0] != '.') unlink((directory + "/" + entry->d_name).c_str());
  closedir(listing);
  rmdir(directory.c_str());
}

Outcome<std::unique_ptr<KernelGuard>> KernelGuard::open(const std::string& directory, GuardHook hook,
                                                        uint32_t max_blocks) {
  if (geteuid() != 0) return failure(FailureKind::permission_denied, "the agent does not run as root");
  if (const auto mounted = check_bpffs(); !mounted) return tl::unexpected(mounted.error());
  libbpf_set_print(ignore_messages);
  std::unique_ptr<KernelGuard> out(new KernelGuard);
  out->fd_ = std::make_unique<Descriptors>();
  if (!is_pinned(directory)) {
    remove(directory);  // Left behind by an agent that was killed while it attached the programs.
    if (mkdir(directory.c_str(), 0700) != 0)
      return failure(FailureKind::unavailable, "cannot create {}: {}", directory, strerror(errno));
    if (const auto loaded = out->load(directory, hook, max_blocks); !loaded) {
      remove(directory);
      return tl::unexpected(loaded.error());
    }
  }
  if (const auto adopted = out->adopt(directory); !adopted) return tl::unexpected(adopted.error());
  out->ring_ = ring_buffer__new(
      out->fd_->map("findings"),
      [](void* guard, void* data, size_t bytes) {
        if (bytes == sizeof(guard_finding))
          static_cast<KernelGuard*>(guard)->found_.push_back(*static_cast<const guard_finding*>(data));
        return 0;
      },
      out.get(), nullptr);
  if (out->ring_ == nullptr)
    return failure(FailureKind::unavailable, "cannot read the guard's findings: {}", strerror(errno));
  return out;
}

KernelGuard::~KernelGuard() {
  ring_buffer__free(ring_);
  bpf_object__close(object_);
}

Outcome<void> KernelGuard::load(const std::string& directory, GuardHook hook, uint32_t max_blocks) {
  const std::unique_ptr<btf, void (*)(btf*)> kernel(btf__load_vmlinux_btf(), btf__free);
  if (!kernel || libbpf_get_error(kernel.get()) != 0)
    return failure(FailureKind::unavailable, "the kernel has no type information (/sys/kernel/btf/vmlinux)");
  object_ = bpf_object__open_mem(carve_guard_program, carve_guard_program_end - carve_guard_program, nullptr);
  if (object_ == nullptr)
    return failure(FailureKind::unavailable, "cannot read the guard's programs: {}", strerror(errno));
  const bool by_module = hook == GuardHook::security_module;
  if (const auto done = choose(object_, kernel.get(), module_hooks, by_module); !done) return done;
  if (const auto done = choose(object_, kernel.get(), value_hooks, !by_module); !done) return done;
  if (const auto done = choose(object_, kernel.get(), exits, true); !done) return done;
  bpf_map__set_max_entries(bpf_object__find_map_by_name(object_, "blocks"), max_blocks);
  if (const int wrong = bpf_object__load(object_); wrong != 0)
    return failure(FailureKind::unavailable, "the kernel rejects the guard's programs: {}", strerror(-wrong));
  for (const char* name : map_names) {
    bpf_map* const map = bpf_object__find_map_by_name(object_, name);
    if (const int wrong = bpf_map__pin(map, pin_path(directory, name).c_str()); wrong != 0)
      return failure(FailureKind::unavailable, "cannot pin {} in {}: {}", name, directory, strerror(-wrong));
  }
  const uint32_t zero = 0;
  const guard_totals begun{.open = 0, .driver = loaded_driver()};
  if (begun.driver == 0) return failure(FailureKind::unavailable, "NVIDIA's kernel module is not loaded");
  if (bpf_map__update_elem(bpf_object__find_map_by_name(object_, "totals"), &zero, sizeof zero, &begun,
                           sizeof begun, BPF_ANY) != 0)
    return failure(FailureKind::unavailable, "cannot write the guard's map of totals: {}", strerror(errno));
  // Frees are counted before allocations are, and allocations before ioctls are refused.
  if (const auto done = attach_all(object_, kernel.get(), probes, directory); !done) return done;
  if (const auto done = attach_all(object_, kernel.get(), exits, directory); !done) return done;
  const auto checked = by_module ? attach_all(object_, kernel.get(), module_hooks, directory)
                                 : attach_all(object_, kernel.get(), value_hooks, directory);
  if (!checked) return checked;
  bpf_program* const rule = bpf_object__find_program_by_name(object_, device_program);
  for (const char* name : {device_program, complete})
    if (const int wrong = bpf_program__pin(rule, pin_path(directory, name).c_str()); wrong != 0)
      return failure(FailureKind::unavailable, "cannot pin {} in {}: {}", name, directory, strerror(-wrong));
  return {};
}

// Opens everything that is pinned.
Outcome<void> KernelGuard::adopt(const std::string& directory) {
  for (const char* name : map_names) {
    os::Fd fd(bpf_obj_get(pin_path(directory, name).c_str()));
    if (!fd)
      return failure(FailureKind::unavailable, "cannot open {}: {}", pin_path(directory, name),
                     strerror(errno));
    fd_->maps.emplace(name, std::move(fd));
  }
  fd_->device_program = os::Fd(bpf_obj_get(pin_path(directory, device_program).c_str()));
  if (!fd_->device_program)
    return failure(FailureKind::unavailable, "cannot open {}: {}", pin_path(directory, device_program),
                   strerror(errno));
  const auto open_programs = [&](const auto& rows) {
    for (const Attachment& row : rows) {
      const os::Fd link(bpf_obj_get(pin_path(directory, row.program).c_str()));
      bpf_link_info info{};
      uint32_t bytes = sizeof info;
      if (!link || bpf_obj_get_info_by_fd(link.get(), &info, &bytes) != 0) continue;
      if (os::Fd program(bpf_prog_get_fd_by_id(info.prog_id)); program)
        fd_->programs.push_back(std::move(program));
    }
  };
  const bool by_module = access(pin_path(directory, module_hooks[0].program).c_str(), F_OK) == 0;
  hook_ = by_module ? GuardHook::security_module : GuardHook::return_value;
  open_programs(module_hooks);
  open_programs(value_hooks);
  open_programs(exits);
  open_programs(probes);
  return {};
}

Outcome<void> KernelGuard::set_limits(uint64_t slice, const std::vector<GuardLimit>& parts, bool is_probe) {
  if (parts.empty() || parts.size() > GUARD_MAX_PARTS)
    return failure(FailureKind::invalid_argument, "a slice has 1 to {} parts", GUARD_MAX_PARTS);
  guard_limits limits{.parts = static_cast<uint32_t>(parts.size()), .is_probe = is_probe};
  for (size_t i = 0; i < parts.size(); ++i)
    limits.part[i] = {parts[i].minor, 0, parts[i].bytes.count, parts[i].fatal.count};
  const guard_usage none{};
  // An existing usage is kept.
  if (bpf_map_update_elem(fd_->map("usage"), &slice, &none, BPF_NOEXIST) != 0 && errno != EEXIST)
    return failure(FailureKind::resource_exhausted, "the guard's map of slices: {}", strerror(errno));
  if (bpf_map_update_elem(fd_->map("limits"), &slice, &limits, BPF_ANY) != 0)
    return failure(FailureKind::resource_exhausted, "the guard's map of limits: {}", strerror(errno));
  return {};
}

Outcome<void> KernelGuard::add_cgroup(uint64_t slice, const std::string& path) {
  const os::Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto id = cgroup_id(path);
  if (!directory || !id) return failure(FailureKind::not_found, "there is no cgroup {}", path);
  if (bpf_map_update_elem(fd_->map("members"), &*id, &slice, BPF_ANY) != 0)
    return failure(FailureKind::resource_exhausted, "the guard's map of cgroups: {}", strerror(errno));
  // EINVAL: the program is attached to this cgroup already.
  if (bpf_prog_attach(fd_->device_program.get(), directory.get(), BPF_CGROUP_DEVICE, BPF_F_ALLOW_MULTI) !=
          0 &&
      errno != EINVAL)
    return failure(FailureKind::unavailable, "cannot restrict the devices of {}: {}", path, strerror(errno));
  return {};
}

void KernelGuard::remove_cgroup(const std::string& path) {
  const os::Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto id = cgroup_id(path);
  if (!directory || !id) return;  // The end of a cgroup detaches its programs.
  bpf_prog_detach2(fd_->device_program.get(), directory.get(), BPF_CGROUP_DEVICE);
  bpf_map_delete_elem(fd_->map("members"), &*id);
}

void KernelGuard::remove_slice(uint64_t slice) {
  uint64_t key = 0, next = 0;
  std::vector<uint64_t> cgroups;
  for (const uint64_t* at = nullptr; bpf_map_get_next_key(fd_->map("members"), at, &next) == 0; at = &key) {
    key = next;
    uint64_t of = 0;
    if (bpf_map_lookup_elem(fd_->map("members"), &key, &of) == 0 && of == slice) cgroups.push_back(key);
  }
  for (const uint64_t cgroup : cgroups) bpf_map_delete_elem(fd_->map("members"), &cgroup);
  bpf_map_delete_elem(fd_->map("limits"), &slice);
  bpf_map_delete_elem(fd_->map("usage"), &slice);
}

std::vector<uint64_t> KernelGuard::slices() const {
  std::vector<uint64_t> out;
  uint64_t key = 0, next = 0;
  for (const uint64_t* at = nullptr; bpf_map_get_next_key(fd_->map("limits"), at, &next) == 0; at = &key)
    out.push_back(key = next);
  return out;
}

std::optional<GuardUsage> KernelGuard::usage(uint64_t slice) const {
  guard_usage read{};
  guard_limits limits{};
  if (bpf_map_lookup_elem(fd_->map("usage"), &slice, &read) != 0 ||
      bpf_map_lookup_elem(fd_->map("limits"), &slice, &limits) != 0)
    return std::nullopt;
  GuardUsage out{
      .refused = read.refused, .denied = read.denied, .unparsed = read.unparsed, .uncounted = read.uncounted};
  if (read.beyond != 0) out.beyond = static_cast<unsigned>(read.beyond - 1);
  for (uint32_t i = 0; i < std::min<uint32_t>(limits.parts, GUARD_MAX_PARTS); ++i)
    out.parts.push_back({{read.part[i].used}, {read.part[i].committed}, {read.part[i].peak}});
  return out;
}

int KernelGuard::findings_fd() const { return ring_buffer__epoll_fd(ring_); }

std::vector<guard_finding> KernelGuard::findings() {
  found_.clear();
  ring_buffer__consume(ring_);
  return found_;
}

std::string KernelGuard::trouble() const {
  const uint32_t zero = 0;
  guard_totals totals{};
  if (bpf_map_lookup_elem(fd_->map("totals"), &zero, &totals) != 0) return "the guard's maps cannot be read";
  if (totals.driver != loaded_driver())
    return "NVIDIA's kernel module was loaded again after the guard was attached to it; restart the agent";
  if (const uint64_t times = missed(); times != 0)
    return fmt::format("the kernel skipped the guard's programs {} times", times);
  return "";
}

uint64_t KernelGuard::missed() const {
  uint64_t out = 0;
  for (const os::Fd& program : fd_->programs) {
    bpf_prog_info info{};
    uint32_t bytes = sizeof info;
    if (bpf_obj_get_info_by_fd(program.get(), &info, &bytes) == 0) out += info.recursion_misses;
  }
  return out;
}

}  // namespace carve::node
