#include "runner/supervisor_state.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "os/beneath.h"
#include "os/directory.h"
#include "runner/liveness_file.h"
#include "wire/api/json.h"

namespace carve::runner {
namespace {

using K = FailureKind;

constexpr unsigned max_reads = 100;  // Until two are equal; a supervisor writes its state four times.

struct flock whole_file(short type) {
  struct flock out {};
  out.l_type = type;
  out.l_whence = SEEK_SET;
  return out;
}

Outcome<SupervisorState> read_state_in(int folder, const std::string& directory) {
  const auto text = os::read_beneath(folder, state_file_name, max_state_bytes);
  if (!text && errno == ENOENT) return SupervisorState{};
  if (!text)
    return failure(K::unavailable, "{}/{} cannot be read: {}", directory, state_file_name, strerror(errno));
  auto state = api::read<SupervisorState>(*text, api::Reading::lenient);
  if (!state) return failure(K::unavailable, "{}/{}: {}", directory, state_file_name, state.error());
  return *state;
}

Outcome<bool> is_supervised(int folder, const std::string& directory) {
  const os::Fd lock = os::open_beneath(folder, lock_file_name);
  if (!lock && errno == ENOENT) return false;
  struct flock wanted = whole_file(F_RDLCK);
  if (!lock || fcntl(lock.get(), F_OFD_GETLK, &wanted) != 0)
    return failure(K::unavailable, "{}/{} cannot be read: {}", directory, lock_file_name, strerror(errno));
  return wanted.l_type != F_UNLCK;
}

}  // namespace

std::string exit_text(const SupervisorState& state) {
  std::string out = state.signal != 0 ? fmt::format("signal {}", state.signal)
                                      : fmt::format("exit status {}", state.exit_status);
  if (state.exceeded_memory_bytes != 0)
    out += fmt::format(": its memory limit of {} was exceeded", text(Bytes{state.exceeded_memory_bytes}));
  return out;
}

ProgramPhase SeenProgram::phase() const {
  if (is_live) return ProgramPhase::running;
  if (state.attempt == 0) return ProgramPhase::never_started;
  if (state.ended_ns != 0) return ProgramPhase::ended;
  return is_supervised ? ProgramPhase::running : ProgramPhase::lost;
}

namespace {

Outcome<SeenProgram> read_directory(const std::string& directory) {
  const os::Fd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder && errno == ENOENT) return SeenProgram{};
  if (!folder) return failure(K::unavailable, "{} cannot be read: {}", directory, strerror(errno));
  // No state is written twice. If the state is the same before and after the look at the lock, both are of
  // one moment: a supervisor that began or ended in between is not mistaken for one that was killed.
  auto state = read_state_in(folder.get(), directory);
  for (unsigned reads = 1; state; ++reads) {
    const auto supervised = is_supervised(folder.get(), directory);
    if (!supervised) return tl::unexpected(supervised.error());
    auto again = read_state_in(folder.get(), directory);
    if (!again) return tl::unexpected(again.error());
    if (*state == *again || reads == max_reads)
      return SeenProgram{.state = std::move(*again), .is_supervised = *supervised};
    state = std::move(again);
  }
  return tl::unexpected(state.error());
}

}  // namespace

// A supervisor that lives is looked for before its state is read and after it: a program that ends meanwhile
// is seen as running, and the next look sees its end.
Outcome<SeenProgram> read_program(const std::string& directory, const std::string& liveness_file) {
  const bool is_live = !liveness_file.empty() && living_supervisor(liveness_file);
  auto seen = read_directory(directory);
  if (!is_live || !living_supervisor(liveness_file)) return seen;
  // What the program made of its directory does not matter.
  if (!seen) return SeenProgram{.state = {}, .is_live = true};
  seen->is_live = true;
  return seen;
}

Outcome<SupervisorState> read_state(const std::string& directory) {
  const os::Fd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return failure(K::unavailable, "{} cannot be read: {}", directory, strerror(errno));
  return read_state_in(folder.get(), directory);
}

Outcome<void> write_state(const std::string& directory, const SupervisorState& state) {
  return os::replace_file(directory + "/" + state_file_name, api::write(state), program_file_mode);
}

Outcome<void> hold_liveness(int lock) {
  const struct flock mark = whole_file(F_WRLCK);
  if (fcntl(lock, F_OFD_SETLK, &mark) != 0)
    return failure(K::unavailable, "{} cannot be marked: {}", lock_file_name, strerror(errno));
  return {};
}

}  // namespace carve::runner
