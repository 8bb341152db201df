#include "load/forked_work.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "load/process_work.h"

namespace carve::load {
namespace {

// The beginning of a child's result on its way to the parent, followed by the latencies.
struct ResultHead {
  uint64_t kernels_completed, kernel_ns, elapsed_ns, bytes_allocated, bytes_verified, latencies;
  char error[128];
};

void send_result(int to, const WorkResult& o) {
  ResultHead head{o.kernels_completed, o.kernel_ns, o.elapsed_ns, o.bytes_allocated, o.bytes_verified,
                  o.latencies.size(),  {}};
  o.error.copy(head.error, sizeof head.error - 1);
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  bytes.append(reinterpret_cast<const char*>(o.latencies.data()), o.latencies.size() * sizeof(uint64_t));
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = write(to, bytes.data() + sent, bytes.size() - sent);
    if (n <= 0) return;
    sent += static_cast<size_t>(n);
  }
}

WorkResult receive_result(int from) {
  std::string bytes;
  char block[65536];
  for (ssize_t n; (n = read(from, block, sizeof block)) > 0;) bytes.append(block, static_cast<size_t>(n));
  WorkResult o;
  if (bytes.size() < sizeof(ResultHead)) {
    o.error = "a process of the load was killed";
    return o;
  }
  ResultHead head{};
  std::memcpy(&head, bytes.data(), sizeof head);
  o = {head.kernels_completed,
       head.kernel_ns,
       head.elapsed_ns,
       head.bytes_allocated,
       head.bytes_verified,
       head.error,
       {}};
  o.latencies.resize((bytes.size() - sizeof head) / sizeof(uint64_t));
  std::memcpy(o.latencies.data(), bytes.data() + sizeof head, o.latencies.size() * sizeof(uint64_t));
  return o;
}

}  // namespace

// The processes are forked before the driver is opened, as the driver requires.
WorkResult work_in_processes(const Options& options) {
  if (options.processes == 1) {
    Meeting alone;
    return work(options, 0, alone);
  }
  void* shared = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("cannot share memory");
  Meeting& meeting = *new (shared) Meeting;
  std::vector<std::pair<pid_t, int>> children;
  for (unsigned i = 0; i < options.processes; ++i) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("cannot start a process");
    if (pid == 0) {
      close(ends[0]);
      send_result(ends[1], work(options, i, meeting));
      _exit(0);
    }
    close(ends[1]);
    children.emplace_back(pid, ends[0]);
  }
  WorkResult total;
  for (const auto& [pid, from] : children) {
    total.add(receive_result(from));
    close(from);
    waitpid(pid, nullptr, 0);
  }
  return total;
}

}  // namespace carve::load
