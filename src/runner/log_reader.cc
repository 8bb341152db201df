// The readers of a log. The files are numbered anew at each rotation, so a reader holds them open and knows
// them by their inodes.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>

#include "os/beneath.h"
#include "runner/log_files.h"

namespace carve::runner {
namespace {

constexpr unsigned max_opens = 10;  // While the log is rotated meanwhile.
constexpr size_t max_file_line_bytes = 2 * max_log_line_bytes;

std::string name_of(unsigned number) { return fmt::format("{}.log", number); }

struct OpenFile {
  os::Fd fd;
  ino_t inode = 0;
  std::string unread = {};  // A line without its end, so far.
};

std::optional<OpenFile> open_file(int folder, unsigned number) {
  OpenFile out{.fd = os::open_beneath(folder, name_of(number))};
  struct stat seen {};
  if (!out.fd || fstat(out.fd.get(), &seen) != 0 || !S_ISREG(seen.st_mode)) return std::nullopt;
  out.inode = seen.st_ino;
  return out;
}

// The directory is in a folder of the controller; the last component may be a link of the program's user.
os::Fd open_folder(const std::string& path) {
  return os::Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

// Opens the files that are newer than the one with the inode `known`; all, if there is none. Returns them
// from the oldest to the newest.
std::vector<OpenFile> open_newer(int folder, ino_t known) {
  std::vector<OpenFile> out;
  for (unsigned opens = 0; opens < max_opens; ++opens) {
    out.clear();
    for (unsigned number = 0; number < max_log_files; ++number) {
      auto file = open_file(folder, number);
      if (file && file->inode == known) break;
      if (file) out.push_back(std::move(*file));
    }
    // If 0.log is still the same, there was no rotation, and each file was opened once.
    const auto newest = open_file(folder, 0);
    if (!newest || (out.empty() ? newest->inode == known : newest->inode == out.front().inode)) break;
  }
  std::ranges::reverse(out);
  return out;
}

// Calls `act` for each complete line that follows what was read before.
void read_lines(OpenFile& file, const std::function<void(std::string_view)>& act) {
  char block[64 << 10];
  for (ssize_t got; (got = read(file.fd.get(), block, sizeof block)) > 0;) {
    std::string_view left(block, static_cast<size_t>(got));
    for (size_t end; (end = left.find('\n')) != left.npos; left.remove_prefix(end + 1)) {
      file.unread.append(left.substr(0, end));
      act(file.unread);
      file.unread.clear();
    }
    file.unread.append(
        left.substr(0, max_file_line_bytes - std::min(max_file_line_bytes, file.unread.size())));
  }
}

// A line of a file; no value if it has another form.
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

// Joins the parts of long lines.
class LineJoiner {
 public:
  // Returns the line that this one completes.
  std::optional<LogLine> add(FileLine part) {
    std::string& open = open_[static_cast<size_t>(part.line.stream)];
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
    bytes_ += line.text.size() + sizeof line;
    lines_.push_back(std::move(line));
    const size_t max_lines = selection.tail == 0 ? SIZE_MAX : selection.tail;
    while (lines_.size() > max_lines || (bytes_ > max_read_bytes && lines_.size() > 1)) {
      bytes_ -= lines_.front().text.size() + sizeof line;
      lines_.pop_front();
    }
  }
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

// The lines of the last attempt and of the one before, of all that was read so far.
class LineCollector {
 public:
  void add(std::string_view text, const LogSelection& selection) {
    auto part = parse_line(text);
    if (!part) return;
    const bool is_mark = part->line.stream == LogStream::system && part->line.text.starts_with("attempt ") &&
                         part->line.text.ends_with(" started");
    if (is_mark) {
      joiner_.clear();
      if (!follows_) previous_ = std::exchange(last_, {});
    } else if (auto line = joiner_.add(std::move(*part))) {
      last_.add(std::move(*line), selection);
    }
  }
  // Keeps the lines of all attempts from now on.
  void follow() { follows_ = true; }
  std::vector<LogLine> take_last() { return last_.take(); }
  std::vector<LogLine> take_previous() { return previous_.take(); }

 private:
  LineJoiner joiner_;
  KeptLines last_, previous_;
  bool follows_ = false;
};

}  // namespace

std::vector<LogLine> read_log(const std::string& directory, const std::string& folder,
                              const LogSelection& selection) {
  const os::Fd opened = open_folder(directory + "/" + folder);
  LineCollector lines;
  for (OpenFile& file : open_newer(opened.get(), 0))
    read_lines(file, [&](std::string_view text) { lines.add(text, selection); });
  return selection.previous ? lines.take_previous() : lines.take_last();
}

struct LogFollower::State {
  std::string folder;
  LogSelection selection;
  LineCollector lines;
  std::optional<OpenFile> newest;
};

LogFollower::LogFollower(const std::string& directory, const std::string& folder, LogSelection selection)
    : state_(new State{.folder = directory + "/" + folder, .selection = std::move(selection)}) {}
LogFollower::~LogFollower() = default;
LogFollower::LogFollower(LogFollower&&) noexcept = default;
LogFollower& LogFollower::operator=(LogFollower&&) noexcept = default;

std::vector<LogLine> LogFollower::next() {
  const auto add = [&](std::string_view text) { state_->lines.add(text, state_->selection); };
  const os::Fd folder = open_folder(state_->folder);
  // A file is complete before the next one is made, so the newer ones are opened before the rest is read.
  std::vector<OpenFile> newer = open_newer(folder.get(), state_->newest ? state_->newest->inode : 0);
  if (state_->newest) read_lines(*state_->newest, add);
  for (OpenFile& file : newer) {
    read_lines(file, add);
    state_->newest = std::move(file);
  }
  if (state_->newest) {
    state_->lines.follow();
    state_->selection.tail = 0;
  }
  return state_->lines.take_last();
}

}  // namespace carve::runner
