#include "runner/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "core/invariant.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/process.h"

namespace carve::runner {
namespace {

std::string file_of(const std::string& folder, unsigned number) {
  return fmt::format("{}/{}.log", folder, number);
}

}  // namespace

std::string attempt_mark(uint32_t attempt) { return fmt::format("attempt {} started", attempt); }

Outcome<LogWriter> LogWriter::open(const std::string& folder, uint64_t max_file_bytes) {
  if (const auto made = os::make_directory(folder, 0750); !made) return tl::unexpected(made.error());
  LogWriter out(folder, max_file_bytes);
  if (!out.open_newest())
    return failure(FailureKind::unavailable, "{}: {}", file_of(folder, 0), strerror(errno));
  return out;
}

bool LogWriter::open_newest() {
  file_ = os::Fd(::open(file_of(folder_, 0).c_str(),
                        O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640));
  struct stat seen {};
  if (!file_ || fstat(file_.get(), &seen) != 0 || !S_ISREG(seen.st_mode)) {
    file_.reset();
    return false;
  }
  size_ = static_cast<uint64_t>(seen.st_size);
  // A killed supervisor may have left an incomplete line.
  char last = '\n';
  if (size_ > 0 && pread(file_.get(), &last, 1, seen.st_size - 1) == 1 && last != '\n') append("\n");
  return true;
}

void LogWriter::rotate() {
  for (unsigned number = max_log_files - 1; number > 0; --number)
    rename(file_of(folder_, number - 1).c_str(), file_of(folder_, number).c_str());
  open_newest();
}

bool LogWriter::append(const std::string& line) {
  if (size_ + line.size() > max_file_bytes_ && size_ > 0) rotate();
  if (!file_ && !open_newest()) return false;
  const ssize_t written = ::write(file_.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) {
    size_ += line.size();
    return true;
  }
  // The disk is full. A partial line would be joined with the next one.
  if (written > 0 && ftruncate(file_.get(), static_cast<off_t>(size_)) != 0)
    size_ += static_cast<uint64_t>(written);
  return false;
}

void LogWriter::write_line(LogStream stream, std::string_view content, bool is_whole, int64_t now_ns) {
  invariant(content.size() <= max_log_line_bytes && content.find('\n') == content.npos,
            "the content has no line end and fits a line");
  const auto line = [&](LogStream from, std::string_view what, bool whole) {
    return fmt::format("{} {} {} {}\n", os::rfc3339(now_ns, os::Decimals::nanoseconds), text(from),
                       whole ? 'F' : 'P', what);
  };
  if (lost_lines_ > 0 &&
      append(line(LogStream::system, fmt::format("{} lines could not be written", lost_lines_), true)))
    lost_lines_ = 0;
  if (!append(line(stream, content, is_whole))) ++lost_lines_;
  if (stream != LogStream::standard_output) last_error_ = content.substr(0, max_last_error_bytes);
}

void LogWriter::write(LogStream stream, std::string_view bytes, int64_t now_ns) {
  std::string& partial = partial_[static_cast<size_t>(stream)];
  while (!bytes.empty()) {
    invariant(partial.size() < max_log_line_bytes, "a full line was flushed");
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    const size_t taken = std::min(end, max_log_line_bytes - partial.size());
    partial.append(bytes.substr(0, taken));
    const bool has_end = taken == end && end < bytes.size();
    bytes.remove_prefix(taken + (has_end ? 1 : 0));
    if (!has_end && partial.size() < max_log_line_bytes) return;
    write_line(stream, partial, has_end, now_ns);
    partial.clear();
  }
}

void LogWriter::finish(int64_t now_ns) {
  for (size_t i = 0; i < std::size(partial_); ++i) {
    if (partial_[i].empty()) continue;
    write_line(static_cast<LogStream>(i), partial_[i], true, now_ns);
    partial_[i].clear();
  }
}

}  // namespace carve::runner
