// The output of a supervised program, in files that rotate. A line of a file is
//
//   2026-11-23T10:00:00.123456789Z stdout F text
//
// with the stream (stdout, stderr, or system for lines of the supervisor) and F, or P if the line continues
// in the next one; this is the format of Kubernetes' container runtimes. Lines are cut at 16 KiB.
//
// 0.log is the newest file. A file that exceeds 10 MiB becomes 1.log, and so on up to 4.log, which is
// deleted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/words.h"
#include "os/fd.h"

namespace carve::runner {

inline constexpr size_t max_log_line_bytes = 16 << 10;
inline constexpr uint64_t max_log_file_bytes = 10 << 20;
inline constexpr unsigned max_log_files = 5;
inline constexpr size_t max_last_error_bytes = 300;

enum class LogStream : uint8_t { standard_output, standard_error, system };

// Returns the line that marks the start of an attempt, without its line end.
std::string attempt_mark(uint32_t attempt);

class LogWriter {
 public:
  // Creates the folder if it is missing and opens its newest file for appending.
  static Outcome<LogWriter> open(const std::string& folder, uint64_t max_file_bytes = max_log_file_bytes);

  // Takes the bytes of a stream in pieces of any size. An incomplete line is kept until it is complete or has
  // 16 KiB. Lines that cannot be written, for example to a full disk, are counted and lost; their number is
  // written before the next line that can be written.
  void write(LogStream stream, std::string_view bytes, int64_t now_ns);
  // Writes the incomplete line of each stream.
  void finish(int64_t now_ns);
  // Returns the last line of standard error or of the supervisor, truncated. Empty if there was none.
  const std::string& last_error() const { return last_error_; }

 private:
  LogWriter(std::string folder, uint64_t max_file_bytes)
      : folder_(std::move(folder)), max_file_bytes_(max_file_bytes) {}
  bool open_newest();
  void rotate();
  void write_line(LogStream stream, std::string_view content, bool is_whole, int64_t now_ns);
  bool append(const std::string& line);

  std::string folder_;
  uint64_t max_file_bytes_;
  os::Fd file_;
  uint64_t size_ = 0;  // Size of the newest file.
  std::string partial_[3];
  uint64_t lost_lines_ = 0;
  std::string last_error_;
};

// One line of a log.
struct LogLine {
  std::string time;  // In the format of the file.
  LogStream stream = LogStream::standard_output;
  std::string text;
};

// Returns the line as its time and its text: "2026-11-23T10:00:00.123456789Z text".
std::string timed_text(const LogLine&);

// Selects the lines to read.
struct LogSelection {
  bool previous = false;            // Reads the attempt before the last one.
  std::optional<size_t> tail = {};  // Number of last lines; no value for all lines.
  std::string since;                // Lines from this time on, in the format of the files; empty for all.
};

// Limit of the lines that a reader holds: older lines are left out, and longer ones divided.
inline constexpr size_t max_read_bytes = 10 << 20;
inline constexpr size_t max_read_lines = 200'000;
inline constexpr size_t max_joined_line_bytes = 512 << 10;

// Limit of one read of a follower.
inline constexpr size_t max_follow_bytes = 1 << 20;
inline constexpr std::string_view log_gap_line =
    "(lines are missing: they were deleted before they were read)";

// Returns the selected lines of `folder`, a name in `directory`, in order and with the parts of long lines
// joined. The marks of the attempts are left out. A missing or empty folder has no lines. The owner of the
// directory is not trusted: symbolic links are not followed, and files that are not regular or lines in
// another format are left out. If a file is larger than any that a LogWriter creates, only its end is read.
// The file system may block the caller for any time.
std::vector<LogLine> read_log(const std::string& directory, const std::string& folder, const LogSelection&);

// Reads a log while it is being written, across rotations and later attempts.
class LogFollower {
 public:
  // `folder` is a name in `directory`. `selection` selects the lines to start with; `previous` is ignored.
  LogFollower(const std::string& directory, const std::string& folder, LogSelection selection);
  ~LogFollower();
  LogFollower(LogFollower&&) noexcept;
  LogFollower& operator=(LogFollower&&) noexcept;

  // Returns the next complete lines from about `max_bytes` of the files, without waiting. Empty if all
  // written lines have been returned. With a `tail`, the first call returns those lines. If the log was
  // rotated more often between two calls than it has files, a supervisor line reports that lines are missing.
  std::vector<LogLine> next(size_t max_bytes = max_follow_bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace carve::runner

template <>
struct carve::Words<carve::runner::LogStream> {
  static constexpr const char* kind = "stream";
  static constexpr std::string_view words[] = {"stdout", "stderr", "system"};
};
