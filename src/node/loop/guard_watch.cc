#include "node/loop/guard_watch.h"

#include <sys/epoll.h>

#include "os/clock.h"
#include "os/log.h"

namespace carve::node {

void GuardWatch::start() {
  std::set<uint64_t> living;
  for (const auto& [id, slice] : node_.slices) living.insert(id);
  node_.guard->keep_only(living);
  if (node_.guard->findings_fd() < 0) return;
  node_.loop.watch(node_.guard->findings_fd(), EPOLLIN, [this](uint32_t) { take_findings(); });
  node_.loop.every(os::second, [this] {
    check();
    take_findings();
  });
}

void GuardWatch::take_findings() {
  for (const guard_finding& finding : node_.guard->findings()) take(finding);
}

void GuardWatch::take(const guard_finding& finding) {
  LiveSlice* const slice = node_.slices.find(finding.slice);
  if (slice == nullptr || slice->stopping) return;
  if (finding.kind == GUARD_UNCOUNTED) {
    const std::string text = "the kernel guard could not record an allocation; it refuses further ones";
    os::log::error("{}: {}", slice->name(), text);
    node_.caused_event(*slice, text);
    return;
  }
  const auto& parts = slice->granted().parts;
  if (finding.part >= parts.size()) return;
  const NodeDevice* const device = node_.device(parts[finding.part].device);
  const std::string why =
      fmt::format("it allocated {} on device {}, beyond its quota of {} and what is tolerated (kernel guard)",
                  text(Bytes{finding.used}), device == nullptr ? 0 : device->device.index,
                  text(parts[finding.part].memory));
  slice->violations.add(ViolationKind::over_quota, why);
  lifecycle_.ending().stop(*slice, why);
}

// The descriptor is not watched any more when the guard is gone.
void GuardWatch::check() {
  const int fd = node_.guard->findings_fd();
  const std::string trouble = node_.guard->check();
  if (trouble.empty()) return;
  node_.loop.forget(fd);
  os::log::error("the kernel guard is no longer in force: {}", trouble);
  node_.event("", "memory limits are enforced only by the guest library: " + trouble);
}

}  // namespace carve::node
