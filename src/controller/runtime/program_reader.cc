#include "controller/runtime/program_reader.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>

#include "controller/runtime/launcher.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

constexpr int64_t settled_after_ns = 2 * os::second;
constexpr int64_t reread_interval_ns = 30 * os::second;
constexpr uint32_t reported = IN_CREATE | IN_DELETE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO |
                              IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF;

}  // namespace

ProgramReader::ProgramReader(std::string folder)
    : folder_(std::move(folder)), reports_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

void ProgramReader::take_reports(int64_t now_ns) {
  now_ns_ = now_ns;
  alignas(inotify_event) char reports[16 << 10];
  for (ssize_t got = 0; reports_ && (got = ::read(reports_.get(), reports, sizeof reports)) > 0;)
    take(reports, static_cast<size_t>(got));
}

void ProgramReader::take(const char* reports, size_t size) {
  for (size_t at = 0; at + sizeof(inotify_event) <= size;) {
    inotify_event report;
    memcpy(&report, reports + at, sizeof report);
    at += sizeof report + report.len;
    if ((report.mask & IN_Q_OVERFLOW) != 0)
      for (auto& [name, known] : known_) known.reported_ns = now_ns_;
    const auto name = names_.find(report.wd);
    if (name == names_.end()) continue;
    Known& known = known_[name->second];
    known.reported_ns = now_ns_;
    if ((report.mask & (IN_IGNORED | IN_MOVE_SELF | IN_DELETE_SELF)) == 0) continue;
    if ((report.mask & IN_IGNORED) == 0) inotify_rm_watch(reports_.get(), report.wd);
    known.watch = -1;
    names_.erase(name);
  }
}

int ProgramReader::watched(const std::string& name) const {
  return reports_ ? inotify_add_watch(reports_.get(), directory_of(name).c_str(),
                                      reported | IN_ONLYDIR | IN_DONT_FOLLOW)
                  : -1;
}

Outcome<runner::SeenProgram> ProgramReader::read(const std::string& name) {
  Known& known = known_[name];
  if (known.watch < 0) {
    known.watch = watched(name);
    if (known.watch >= 0) {
      names_[known.watch] = name;
      known.reported_ns = now_ns_;
    }
  }
  const bool is_settled = known.watch >= 0 && known.seen &&
                          known.read_ns >= known.reported_ns + settled_after_ns &&
                          now_ns_ < known.read_ns + reread_interval_ns;
  if (is_settled) return *known.seen;
  ++reads_;
  auto seen = runner::read_program(directory_of(name), liveness_file_of(folder_, name));
  if (!seen) {
    known.seen.reset();
    return seen;
  }
  known.read_ns = now_ns_;
  known.seen = *seen;
  return seen;
}

void ProgramReader::forget(const std::string& name) {
  const auto found = known_.find(name);
  if (found == known_.end()) return;
  if (found->second.watch >= 0) {
    inotify_rm_watch(reports_.get(), found->second.watch);
    names_.erase(found->second.watch);
  }
  known_.erase(found);
}

}  // namespace carve::controller
