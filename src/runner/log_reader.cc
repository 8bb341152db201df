// The readers of a log. The files are renamed at each rotation, so a reader keeps them open and identifies
// them by their inodes.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>

#include "core/invariant.h"
#include "os/beneath.h"
#include "runner/log_files.h"

namespace carve::runner {
namespace {

constexpr unsigned max_opens = 10;  // The log may be rotated while it is being opened.
constexpr size_t max_file_line_bytes = 2 * max_log_line_bytes;
// A file written by a LogWriter has at most the limit plus the line that exceeded it. The owner of the file
// can give it any size; then only its end is read.
constexpr uint64_t max_readable_bytes = max_log_file_bytes + max_file_line_bytes;
// Size of a read if a piece contains no complete line: more than the longest joined line.
constexpr size_t max_piece_bytes = 4 * max_joined_line_bytes;

std::string name_of(unsigned number) { return fmt::format("{}.log", number); }

struct OpenFile {
  os::Fd fd;
  ino_t inode = 0;
  std::string unread = {};          // Incomplete line read so far.
  uint64_t whole_lines = 0;         // Offset of the end of the last complete line read.
  bool is_followed_by_gap = false;  // Files between it and the next one were deleted unread.
  bool is_inside_line = false;      // The next bytes belong to a line whose start was skipped.
};

// Skips all but the last `max_readable_bytes` of the unread part. Returns whether it skipped anything.
bool skip_excess(OpenFile& file) {
  struct stat seen {};
  const off_t at = lseek(file.fd.get(), 0, SEEK_CUR);
  if (at < 0 || fstat(file.fd.get(), &seen) != 0) return false;
  if (seen.st_size - at <= static_cast<off_t>(max_readable_bytes)) return false;
  lseek(file.fd.get(), seen.st_size - static_cast<off_t>(max_readable_bytes), SEEK_SET);
  file.unread.clear();
  file.is_inside_line = true;
  return true;
}

std::optional<OpenFile> open_file(int folder, unsigned number) {
  OpenFile out{.fd = os::open_beneath(folder, name_of(number))};
  struct stat seen {};
  if (!out.fd || fstat(out.fd.get(), &seen) != 0 || !S_ISREG(seen.st_mode)) return std::nullopt;
  out.inode = seen.st_ino;
  return out;
}

// The directory is in a folder of the controller; the last component may be a link that the program's user
// created.
os::Fd open_folder(const std::string& path) {
  return os::Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

// Files of a log, from the oldest to the newest.
struct OpenFiles {
  std::vector<OpenFile> files;
  bool has_gap = false;  // The known file is gone, and files after it were deleted.
};

// Opens the files that are newer than the one with inode `known`, or all files if `known` is 0.
OpenFiles open_newer(int folder, ino_t known) {
  OpenFiles out;
  for (unsigned opens = 0; opens < max_opens; ++opens) {
    out = {.files = {}, .has_gap = known != 0};
    for (unsigned number = 0; number < max_log_files; ++number) {
      auto file = open_file(folder, number);
      if (file && file->inode == known) {
        out.has_gap = false;
        break;
      }
      if (file) out.files.push_back(std::move(*file));
    }
    // If 0.log is still the same file, there was no rotation, and each file was opened once.
    const auto newest = open_file(folder, 0);
    if (!newest || (out.files.empty() ? newest->inode == known : newest->inode == out.files.front().inode))
      break;
  }
  out.has_gap = out.has_gap && out.files.size() == max_log_files;
  std::ranges::reverse(out.files);
  return out;
}

// Calls `act` for each complete line in about the next `max_bytes`. Returns the number of bytes read, which
// is less than `max_bytes` at the end of the file.
size_t read_lines(OpenFile& file, size_t max_bytes, const std::function<void(std::string_view)>& act) {
  char block[64 << 10];
  size_t out = 0;
  for (ssize_t got; out < max_bytes && (got = read(file.fd.get(), block, sizeof block)) > 0;) {
    std::string_view left(block, static_cast<size_t>(got));
    const auto before = static_cast<uint64_t>(lseek(file.fd.get(), 0, SEEK_CUR)) - left.size();
    out += left.size();
    for (size_t end; (end = left.find('\n')) != left.npos; left.remove_prefix(end + 1)) {
      file.unread.append(left.substr(0, end));
      file.whole_lines = before + static_cast<size_t>(got) - (left.size() - end - 1);
      if (!std::exchange(file.is_inside_line, false)) act(file.unread);
      file.unread.clear();
    }
    file.unread.append(
        left.substr(0, max_file_line_bytes - std::min(max_file_line_bytes, file.unread.size())));
  }
  return out;
}

// A line of a file. No value if it has another format.
struct FileLine {
  LogLine line;
  bool is_whole;
};
std::optional<FileLine> parse_line(std::string_view text) {
  const size_t stream = text.find(' ');
  const size_t mark = stream == text.npos ? text.npos : text.find(' ', stream + 1);
  if (mark == text.npos || mark + 3 > text.size() || text[mark + 2] != ' ') return std::nullopt;
  const auto known = parse<LogStream>(text.substr(stream + 1, mark - stream - 1));
  if (!known || (text[mark + 1] != 'F' && text[mark + 1] != 'P')) return std::nullopt;
  return FileLine{{.time = std::string(text.substr(0, stream)),
                   .stream = *known,
                   .text = std::string(text.substr(mark + 3))},
                  text[mark + 1] == 'F'};
}

bool is_attempt_mark(const LogLine& line) {
  return line.stream == LogStream::system && line.text.starts_with("attempt ") &&
         line.text.ends_with(" started");
}

// Joins the parts of long lines.
class LineJoiner {
 public:
  // Returns the complete line if this part completes one.
  std::optional<LogLine> add(FileLine part) {
    std::string& open = open_[static_cast<size_t>(part.line.stream)];
    invariant(open.size() < max_joined_line_bytes, "a joined line of this size was returned");
    open += part.line.text;
    if (!part.is_whole && open.size() < max_joined_line_bytes) return std::nullopt;
    part.line.text = std::exchange(open, {});
    return std::move(part.line);
  }
  void clear() {
    for (std::string& text : open_) text.clear();
  }

 private:
  std::string open_[std::size(Words<LogStream>::words)];
};

// The newest lines of one attempt.
class KeptLines {
 public:
  void add(LogLine line, const LogSelection& selection) {
    if (line.time < selection.since) return;
    bytes_ += line.text.size() + 1;
    lines_.push_back(std::move(line));
    const size_t max_lines = std::min(selection.tail.value_or(max_read_lines), max_read_lines);
    while (lines_.size() > max_lines || (bytes_ > max_read_bytes && lines_.size() > 1)) {
      invariant(bytes_ > lines_.front().text.size(), "the bytes of each kept line are counted");
      bytes_ -= lines_.front().text.size() + 1;
      lines_.pop_front();
    }
    invariant(lines_.empty() == (bytes_ == 0), "the bytes of each kept line are counted");
  }
  bool empty() const { return lines_.empty(); }
  std::vector<LogLine> take() {
    std::vector<LogLine> out(std::make_move_iterator(lines_.begin()), std::make_move_iterator(lines_.end()));
    lines_.clear();
    bytes_ = 0;
    return out;
  }

 private:
  std::deque<LogLine> lines_;
  size_t bytes_ = 0;
};

// Collects the lines of the last attempt and of the one before it from everything that has been read.
class LineCollector {
 public:
  void add(std::string_view text, const LogSelection& selection) {
    auto part = parse_line(text);
    if (!part) return;
    if (is_attempt_mark(part->line)) {
      joiner_.clear();
      if (!follows_) previous_ = std::exchange(last_, {});
    } else if (auto line = joiner_.add(std::move(*part))) {
      last_.add(std::move(*line), selection);
    }
  }
  void add_gap() {
    joiner_.clear();
    last_.add({.time = "", .stream = LogStream::system, .text = std::string(log_gap_line)}, {});
  }
  // From now on, keeps the lines of all attempts.
  void follow() { follows_ = true; }
  bool has_lines() const { return !last_.empty(); }
  std::vector<LogLine> take_last() { return last_.take(); }
  std::vector<LogLine> take_previous() { return previous_.take(); }

 private:
  LineJoiner joiner_;
  KeptLines last_, previous_;
  bool follows_ = false;
};

}  // namespace

std::string timed_text(const LogLine& line) { return line.time + " " + line.text; }

std::vector<LogLine> read_log(const std::string& directory, const std::string& folder,
                              const LogSelection& selection) {
  const os::Fd opened = open_folder(directory + "/" + folder);
  LineCollector lines;
  for (OpenFile& file : open_newer(opened.get(), 0).files) {
    if (skip_excess(file)) lines.add_gap();
    read_lines(file, max_readable_bytes, [&](std::string_view text) { lines.add(text, selection); });
  }
  return selection.previous ? lines.take_previous() : lines.take_last();
}

struct LogFollower::State {
  std::string folder;
  LogSelection selection;
  LineCollector lines;
  // The file being read and the newer ones. They stay readable after they are deleted.
  std::deque<OpenFile> files;

  // Starts with the newest lines of the last attempt.
  void begin_with_tail(std::vector<OpenFile> all) {
    invariant(!all.empty(), "a log without files has not started");
    for (OpenFile& file : all) {
      if (skip_excess(file)) lines.add_gap();
      read_lines(file, max_readable_bytes, [&](std::string_view text) { lines.add(text, selection); });
    }
    files.push_back(std::move(all.back()));
  }
  // Starts with the first line of the last attempt, which has not been read yet.
  void begin_with_attempt(std::vector<OpenFile> all) {
    size_t first = 0;
    uint64_t at = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (skip_excess(all[i]) && i == 0) at = static_cast<uint64_t>(lseek(all[i].fd.get(), 0, SEEK_CUR));
      read_lines(all[i], max_readable_bytes, [&](std::string_view text) {
        const auto line = parse_line(text);
        if (!line || !is_attempt_mark(line->line)) return;
        first = i;
        at = all[i].whole_lines;
      });
    }
    for (size_t i = first; i < all.size(); ++i) {
      lseek(all[i].fd.get(), static_cast<off_t>(i == first ? at : 0), SEEK_SET);
      all[i].unread.clear();
      all[i].is_inside_line = false;
      files.push_back(std::move(all[i]));
    }
  }
  void begin(std::vector<OpenFile> all) {
    if (all.empty()) return;
    if (selection.tail)
      begin_with_tail(std::move(all));
    else
      begin_with_attempt(std::move(all));
    selection.tail.reset();
    lines.follow();
  }
};

LogFollower::LogFollower(const std::string& directory, const std::string& folder, LogSelection selection)
    : state_(new State{.folder = directory + "/" + folder, .selection = std::move(selection)}) {}
LogFollower::~LogFollower() = default;
LogFollower::LogFollower(LogFollower&&) noexcept = default;
LogFollower& LogFollower::operator=(LogFollower&&) noexcept = default;

std::vector<LogLine> LogFollower::next(size_t max_bytes) {
  auto& files = state_->files;
  const os::Fd folder = open_folder(state_->folder);
  // A file is complete before the next one is created, so the newer files are opened before the rest of this
  // one is read.
  OpenFiles newer = open_newer(folder.get(), files.empty() ? 0 : files.back().inode);
  if (files.empty()) {
    state_->begin(std::move(newer.files));
  } else if (files.size() <= max_log_files) {  // Otherwise the reader lags and reads its open files first.
    files.back().is_followed_by_gap = newer.has_gap;
    std::ranges::move(newer.files, std::back_inserter(files));
  }
  size_t without_line = 0;
  for (size_t left = max_bytes; !files.empty();) {
    if (skip_excess(files.front())) state_->lines.add_gap();
    const size_t got = read_lines(files.front(), left,
                                  [&](std::string_view text) { state_->lines.add(text, state_->selection); });
    if (got >= left) {
      without_line += got;
      if (state_->lines.has_lines() || without_line >= max_piece_bytes) break;
      left = max_bytes;  // The piece is in the middle of one long line.
      continue;
    }
    if (files.size() == 1) break;
    left -= got;
    if (files.front().is_followed_by_gap) state_->lines.add_gap();
    files.pop_front();
  }
  return state_->lines.take_last();
}

}  // namespace carve::runner
