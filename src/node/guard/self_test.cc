#include "node/guard/self_test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/invariant.h"
#include "os/fd.h"

namespace carve::node {
namespace {

constexpr uint64_t probe_bytes = 1ull << 30;
constexpr int max_program_ms = 10'000;

// The driver's request for an object: NVOS64_PARAMETERS with NV_MEMORY_ALLOCATION_PARAMS. All handles are 0,
// so the driver rejects it.
struct Probe {
  uint32_t root = 0, parent = 0, object = 0, class_number = 0x40;
  uint64_t parameters = 0, rights = 0;
  uint32_t parameter_bytes = 128, flags = 0, status = 0, pad = 0;
  uint64_t memory[16] = {};
};
constexpr unsigned long rm_alloc = _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 48);

// Results of the child; its exit status.
enum Result { refused = 0, cannot_prepare = 1, allowed = 2, allowed_32_bit = 3 };

long ioctl_32_bit(int fd, unsigned long command, void* argument) {
  long result = 54;  // ioctl in the 32-bit table.
  asm volatile("int $0x80"
               : "+a"(result)
               : "b"(static_cast<long>(fd)), "c"(command), "d"(argument)
               : "memory", "r8", "r9", "r10", "r11");
  return result;
}

// Runs in a forked child of a process with threads: only system calls.
[[noreturn]] void request_in_cgroup(int cgroup_procs, int control, Probe* probe) {
  if (write(cgroup_procs, "0", 1) != 1) _exit(cannot_prepare);
  if (ioctl(control, rm_alloc, probe) != -1 || errno != ENOMEM) _exit(allowed);
  _exit(ioctl_32_bit(control, rm_alloc, probe) == -ENOMEM ? refused : allowed_32_bit);
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

struct Prepared {
  os::Fd cgroup_procs;
};
Outcome<Prepared> prepare(MemoryGuard& guard, const std::string& cgroup, const GuardLimit& limit,
                          bool is_count) {
  guard.remove_slice(probe_slice);
  if (const auto set = guard.set_limits(probe_slice, {limit}, is_count); !set)
    return tl::unexpected(set.error());
  if (const auto added = guard.add_cgroup(probe_slice, cgroup); !added) return tl::unexpected(added.error());
  Prepared out{os::Fd(open((cgroup + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC))};
  if (!out.cgroup_procs)
    return failure(FailureKind::unavailable, "cannot open {}/cgroup.procs: {}", cgroup, strerror(errno));
  return out;
}

Outcome<void> verdict(int status) {
  // After the 64-bit request was refused: the kernel has no 32-bit system calls, or the agent's service unit
  // (SystemCallArchitectures=native) does not allow them to this process.
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGSYS)) return {};
  switch (WIFEXITED(status) ? WEXITSTATUS(status) : cannot_prepare) {
    case refused: return {};
    case allowed: return failure(FailureKind::unavailable, "a request beyond the limit was not refused");
    case allowed_32_bit:
      return failure(FailureKind::unavailable, "a 32-bit request beyond the limit was not refused");
    default: return failure(FailureKind::unavailable, "the probe could not enter its cgroup");
  }
}

struct Unmap {
  void operator()(Probe* probe) const { munmap(probe, sizeof *probe); }
};

// Waits until the program has printed something. Returns false if it ends or takes too long.
bool has_printed(int output) {
  pollfd wait{output, POLLIN, 0};
  char line[256];
  return poll(&wait, 1, max_program_ms) == 1 && read(output, line, sizeof line) > 0;
}

[[noreturn]] void run_in_cgroup(int cgroup_procs, int input, int output, char** words) {
  if (write(cgroup_procs, "0", 1) != 1 || dup2(input, 0) < 0 || dup2(output, 1) < 0) _exit(127);
  execv(words[0], words);
  _exit(127);
}

}  // namespace

Outcome<void> test_refusal(MemoryGuard& guard, const std::string& cgroup, const std::string& control_node) {
  const auto prepared = prepare(guard, cgroup, {.minor = 0, .bytes = {0}, .fatal = {UINT64_MAX}}, false);
  if (!prepared) return tl::unexpected(prepared.error());
  const os::Fd control(open(control_node.c_str(), O_RDWR | O_CLOEXEC));
  if (!control) return failure(FailureKind::unavailable, "cannot open {}: {}", control_node, strerror(errno));
  // A 32-bit system call passes an address of 32 bits.
  void* const page = mmap(nullptr, sizeof(Probe), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT | MAP_POPULATE, -1, 0);
  if (page == MAP_FAILED) return failure(FailureKind::unavailable, "mmap: {}", strerror(errno));
  const std::unique_ptr<Probe, Unmap> probe(new (page) Probe);
  probe->parameters = reinterpret_cast<uint64_t>(probe->memory);
  probe->memory[8] = probe_bytes;  // Offset 64.
  const pid_t child = fork();
  if (child == 0) request_in_cgroup(prepared->cgroup_procs.get(), control.get(), probe.get());
  const int status = child > 0 ? wait_for(child) : cannot_prepare << 8;
  const bool is_refused_here = ioctl(control.get(), rm_alloc, probe.get()) != 0 && errno == ENOMEM;
  guard.remove_slice(probe_slice);
  guard.remove_cgroup(cgroup);
  if (is_refused_here)
    return failure(FailureKind::unavailable, "a request of a process outside every slice was refused");
  return verdict(status);
}

Outcome<void> test_count(MemoryGuard& guard, const std::string& cgroup, unsigned minor,
                         const std::vector<std::string>& program) {
  invariant(!program.empty(), "a program allocates");
  const auto prepared =
      prepare(guard, cgroup, {.minor = minor, .bytes = {UINT64_MAX}, .fatal = {UINT64_MAX}}, true);
  if (!prepared) return tl::unexpected(prepared.error());
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0) return failure(FailureKind::unavailable, "pipe: {}", strerror(errno));
  os::Fd child_input(to[0]), input(to[1]);
  if (pipe2(from, O_CLOEXEC) != 0) return failure(FailureKind::unavailable, "pipe: {}", strerror(errno));
  os::Fd output(from[0]), child_output(from[1]);
  std::vector<char*> words;
  for (const std::string& word : program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0)
    run_in_cgroup(prepared->cgroup_procs.get(), child_input.get(), child_output.get(), words.data());
  if (child < 0) return failure(FailureKind::unavailable, "fork: {}", strerror(errno));
  child_output.reset();
  const bool ready = has_printed(output.get());
  const auto during = guard.usage(probe_slice);
  input.reset();
  if (!ready) kill(child, SIGKILL);
  wait_for(child);
  const auto after = guard.usage(probe_slice);
  guard.remove_slice(probe_slice);
  guard.remove_cgroup(cgroup);
  if (!ready) return failure(FailureKind::unavailable, "the probe on device {} could not allocate", minor);
  if (!during || during->parts[0].used.count == 0)
    return failure(FailureKind::unavailable, "an allocation on device {} was not counted", minor);
  if (!after || after->parts[0].used.count != 0)
    return failure(FailureKind::unavailable, "the end of an allocation on device {} was not counted", minor);
  return {};
}

}  // namespace carve::node
