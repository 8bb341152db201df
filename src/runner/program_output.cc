#include "runner/program_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/escaped.h"
#include "os/clock.h"
#include "os/thread_start.h"

namespace carve::runner {
namespace {

constexpr int64_t patience_ns = os::second;  // How long to read after the program has ended.

bool make_pipe(os::Fd& reading, os::Fd& writing) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  reading = os::Fd(ends[0]);
  writing = os::Fd(ends[1]);
  return true;
}

}  // namespace

Outcome<std::unique_ptr<ProgramOutput>> ProgramOutput::open(const std::string& folder) {
  auto log = LogWriter::open(folder);
  if (!log) return tl::unexpected(log.error());
  std::unique_ptr<ProgramOutput> out(new ProgramOutput(std::move(*log)));
  if (!out->finished_.is_open() || !make_pipe(out->out_, out->out_to_log_) ||
      !make_pipe(out->err_, out->err_to_log_))
    return failure(FailureKind::unavailable, "cannot create a pipe: {}", strerror(errno));
  return out;
}

ProgramOutput::~ProgramOutput() { finish(); }

void ProgramOutput::redirect() {
  dup2(out_to_log_.get(), STDOUT_FILENO);
  dup2(err_to_log_.get(), STDERR_FILENO);
  out_to_log_.reset();
  err_to_log_.reset();
  is_redirected_ = true;
}

void ProgramOutput::begin() {
  // The main thread handles SIGCHLD and the signals for the program.
  reader_ = os::start_thread([this] { read_until_closed(); });
}

void ProgramOutput::add_line(const std::string& text) {
  const os::MutexLock lock(mutex_);
  // A line end in a name would start a line that the supervisor did not write.
  log_.write(LogStream::system, escaped(text) + "\n", os::utc_ns());
}

void ProgramOutput::finish() {
  if (!std::exchange(is_redirected_, false)) return;
  if (!reader_.joinable()) begin();  // If no program was started, the runner has printed the reason.
  const os::Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  dup2(null.get(), STDOUT_FILENO);
  dup2(null.get(), STDERR_FILENO);
  finished_.set();
  reader_.join();
}

std::string ProgramOutput::last_error() {
  const os::MutexLock lock(mutex_);
  return log_.last_error();
}

void ProgramOutput::read_until_closed() {
  pollfd polled[] = {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {finished_.fd(), POLLIN, 0}};
  char bytes[64 << 10];     // The capacity of a pipe.
  int64_t deadline_ns = 0;  // 0 while the program runs.
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    const int64_t left_ns = deadline_ns == 0 ? 0 : deadline_ns - os::monotonic_ns();
    if (left_ns < 0) break;
    poll(polled, 3, deadline_ns == 0 ? -1 : static_cast<int>(left_ns / os::millisecond + 1));
    if (polled[2].revents != 0) {
      polled[2].fd = -1;
      deadline_ns = os::monotonic_ns() + patience_ns;
    }
    for (const size_t i : {0, 1}) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      const ssize_t got = ::read(polled[i].fd, bytes, sizeof bytes);
      if (got <= 0) {
        polled[i].fd = -1;
        continue;
      }
      const os::MutexLock lock(mutex_);
      log_.write(i == 0 ? LogStream::standard_output : LogStream::standard_error,
                 std::string_view(bytes, static_cast<size_t>(got)), os::utc_ns());
    }
  }
  const os::MutexLock lock(mutex_);
  log_.finish(os::utc_ns());
}

}  // namespace carve::runner
