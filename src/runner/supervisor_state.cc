#include "runner/supervisor_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "core/escaped.h"
#include "os/beneath.h"
#include "os/directory.h"
#include "runner/liveness_file.h"
#include "runner/log_files.h"
#include "wire/api/json.h"

namespace carve::runner {
namespace {

constexpr unsigned max_reads = 100;  // Until two reads are equal; a state is written five times.

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
    return failure(FailureKind::unavailable, "{}/{} cannot be read: {}", directory, state_file_name,
                   strerror(errno));
  auto state = api::read<SupervisorState>(*text, api::Reading::lenient);
  if (!state)
    return failure(FailureKind::unavailable, "{}/{}: {}", directory, state_file_name, state.error());
  return *state;
}

Outcome<bool> is_supervised(int folder, const std::string& directory) {
  const os::Fd lock = os::open_beneath(folder, lock_file_name);
  if (!lock && errno == ENOENT) return false;
  struct flock wanted = whole_file(F_RDLCK);
  if (!lock || fcntl(lock.get(), F_OFD_GETLK, &wanted) != 0)
    return failure(FailureKind::unavailable, "{}/{} cannot be read: {}", directory, lock_file_name,
                   strerror(errno));
  return wanted.l_type != F_UNLCK;
}

}  // namespace

bool is_cleaning_up(const SupervisorState& state, int64_t utc_ns) {
  return state.program_ended_ns != 0 && state.ended_ns == 0 &&
         utc_ns - state.program_ended_ns < clean_up_patience_ns;
}

std::string exit_text(const SupervisorState& state) {
  std::string out = state.signal != 0 ? fmt::format("signal {}", state.signal)
                                      : fmt::format("exit status {}", state.exit_status);
  if (state.exceeded_memory_bytes != 0)
    out += fmt::format(": its memory limit of {} was exceeded", text(Bytes{state.exceeded_memory_bytes}));
  else if (!state.start_error.empty())
    out += ": " + escaped(state.start_error.substr(0, max_last_error_bytes));
  return out;
}

ProgramPhase SeenProgram::phase() const {
  if (is_live) return ProgramPhase::running;
  if (state.attempt == 0) return ProgramPhase::never_started;
  if (state.ended_ns != 0) return ProgramPhase::ended;
  if (is_supervised) return ProgramPhase::running;
  return state.program_ended_ns != 0 ? ProgramPhase::ended : ProgramPhase::lost;
}

namespace {

Outcome<SeenProgram> read_directory(const std::string& directory) {
  const os::Fd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder && errno == ENOENT) return SeenProgram{};
  if (!folder) return failure(FailureKind::unavailable, "{} cannot be read: {}", directory, strerror(errno));
  // No state is written twice. So if the state is the same before and after the check of the lock, state and
  // lock belong to the same moment, and a supervisor that started or ended in between is not mistaken for a
  // killed one.
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

// The supervisor is checked before and after its state is read. A program that ends in the meantime appears
// as running, and the next read shows its end.
Outcome<SeenProgram> read_program(const std::string& directory, const std::string& liveness_file) {
  const bool is_live = !liveness_file.empty() && living_supervisor(liveness_file);
  auto seen = read_directory(directory);
  if (!is_live || !living_supervisor(liveness_file)) return seen;
  // Whatever the program's directory contains.
  if (!seen) return SeenProgram{.state = {}, .is_live = true};
  seen->is_live = true;
  return seen;
}

Outcome<SupervisorState> read_state(const std::string& directory) {
  const os::Fd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return failure(FailureKind::unavailable, "{} cannot be read: {}", directory, strerror(errno));
  return read_state_in(folder.get(), directory);
}

Outcome<void> write_state(const std::string& directory, const SupervisorState& state) {
  return os::replace_file(directory + "/" + state_file_name, api::write(state), program_file_mode);
}

Outcome<void> write_last_state(const std::string& directory, const SupervisorState& state) {
  auto written = write_state(directory, state);
  if (written) return written;
  const os::Fd file(open((directory + "/" + state_file_name).c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  const std::string text = api::write(state);
  const auto size = static_cast<ssize_t>(text.size());
  if (!file || pwrite(file.get(), text.data(), text.size(), 0) != size || ftruncate(file.get(), size) != 0)
    return written;
  return {};
}

Outcome<void> hold_liveness(int lock) {
  const struct flock mark = whole_file(F_WRLCK);
  if (fcntl(lock, F_OFD_SETLK, &mark) != 0)
    return failure(FailureKind::unavailable, "cannot lock {}: {}", lock_file_name, strerror(errno));
  return {};
}

}  // namespace carve::runner
