// Clusters and traces are untrusted input. The first byte selects which of the two follows. Parsed input is
// valid: a short replay of it never grants more than the cluster has.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "replay/inflate.h"

namespace {

using namespace carve::replay;

// A file with these bytes and a path, which is removed at the end.
class File {
 public:
  explicit File(std::string_view text) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

constexpr std::string_view nodes =
    "sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,2,T4\nb,96000,393216,8,G2\nc,96000,393216,8,G2\n";

void complained(const carve::Failure& failure, const std::string& path) {
  if (failure.message.find(path) == std::string::npos) std::abort();  // The error names the file.
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 1 << 16) return 0;
  const File file({reinterpret_cast<const char*>(data) + 1, size - 1});
  if (data[0] % 2 == 0) {
    const auto cluster = read_cluster(file.path());
    if (!cluster) return complained(cluster.error(), file.path()), 0;
    if (cluster->devices() == 0) std::abort();
    return 0;
  }
  static const Cluster cluster = *read_cluster(File(nodes).path());
  const auto trace = read_trace(file.path(), cluster);
  if (!trace) return complained(trace.error(), file.path()), 0;
  for (const Pod& p : trace->pods)
    if (p.devices > 8 || p.milli > 1000 || p.deleted < p.created) std::abort();
  if (trace->pods.size() > 64) return 0;
  const Inflated out = inflate(cluster, *trace, carve::Strategy::fgd_scarcity, true, 42);
  for (size_t m = 0; m < marks.size(); ++m)
    if (out.allocated[m] < 0 || out.allocated[m] > 100) std::abort();
  return 0;
}
