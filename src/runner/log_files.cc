#include "runner/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "os/clock.h"
#include "os/directory.h"
#include "os/process.h"

namespace carve::runner {
namespace {

using K = FailureKind;

constexpr std::string_view stream_words[] = {"stdout", "stderr", "system"};

std::string file_of(const std::string& folder, unsigned number) {
  return fmt::format("{}/{}.log", folder, number);
}

}  // namespace

Outcome<LogWriter> LogWriter::open(const std::string& folder, uint64_t max_file_bytes) {
  if (const auto made = os::make_directory(folder, 0750); !made) return tl::unexpected(made.error());
  LogWriter out(folder, max_file_bytes);
  if (!out.open_newest()) return failure(K::unavailable, "{}: {}", file_of(folder, 0), strerror(errno));
  return out;
}

bool LogWriter::open_newest() {
  file_ = os::Fd(
      ::open(file_of(folder_, 0).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640));
  struct stat seen {};
  if (!file_ || fstat(file_.get(), &seen) != 0) return false;
  size_ = static_cast<uint64_t>(seen.st_size);
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
  if (written > 0) size_ += static_cast<uint64_t>(written);
  return written == static_cast<ssize_t>(line.size());
}

void LogWriter::write_line(LogStream stream, std::string_view text, bool is_whole, int64_t now_ns) {
  const auto line = [&](LogStream from, std::string_view what, bool whole) {
    return fmt::format("{} {} {} {}\n", os::rfc3339(now_ns, os::Decimals::nanoseconds),
                       stream_words[static_cast<size_t>(from)], whole ? 'F' : 'P', what);
  };
  if (lost_lines_ > 0 &&
      append(line(LogStream::system, fmt::format("{} lines could not be written", lost_lines_), true)))
    lost_lines_ = 0;
  if (!append(line(stream, text, is_whole))) ++lost_lines_;
}

void LogWriter::write(LogStream stream, std::string_view bytes, int64_t now_ns) {
  std::string& partial = partial_[static_cast<size_t>(stream)];
  while (!bytes.empty()) {
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

namespace {

// A line of a file; no value if it has another form, for example because the supervisor was killed within it.
struct FileLine {
  LogLine line;
  bool is_whole;
};
std::optional<FileLine> parse_line(std::string_view text) {
  const size_t stream = text.find(' ');
  const size_t mark = stream == text.npos ? text.npos : text.find(' ', stream + 1);
  if (mark == text.npos || mark + 3 > text.size() || text[mark + 2] != ' ') return std::nullopt;
  const auto* const word = std::ranges::find(stream_words, text.substr(stream + 1, mark - stream - 1));
  if (word == std::end(stream_words) || (text[mark + 1] != 'F' && text[mark + 1] != 'P')) return std::nullopt;
  return FileLine{{.time = std::string(text.substr(0, stream)),
                   .stream = static_cast<LogStream>(word - std::begin(stream_words)),
                   .text = std::string(text.substr(mark + 3))},
                  text[mark + 1] == 'F'};
}

// Collects the lines of attempts: joins the parts of long lines, and begins anew at each attempt.
class LineCollector {
 public:
  void add(std::string_view text) {
    auto parsed = parse_line(text);
    if (!parsed) return;
    LogLine& line = parsed->line;
    if (line.stream == LogStream::system && line.text.starts_with("attempt ") &&
        line.text.ends_with(" started")) {
      previous_ = std::move(last_);
      last_.clear();
      return;
    }
    auto& open = open_[static_cast<size_t>(line.stream)];
    if (open) line.text = *open + line.text;
    open.reset();
    if (parsed->is_whole)
      last_.push_back(std::move(line));
    else
      open = std::move(line.text);
  }
  std::vector<LogLine> take(bool previous) { return std::move(previous ? previous_ : last_); }

 private:
  std::vector<LogLine> previous_, last_;
  std::optional<std::string> open_[3];
};

}  // namespace

std::vector<LogLine> read_log(const std::string& folder, const LogSelection& selection) {
  LineCollector collector;
  for (unsigned number = max_log_files; number-- > 0;) {
    const auto text = os::read_file(file_of(folder, number), max_log_file_bytes + max_log_line_bytes);
    if (!text) continue;
    size_t begin = 0;
    while (begin < text->size()) {
      const size_t end = std::min(text->find('\n', begin), text->size());
      collector.add(std::string_view(*text).substr(begin, end - begin));
      begin = end + 1;
    }
  }
  std::vector<LogLine> lines = collector.take(selection.previous);
  std::erase_if(lines, [&](const LogLine& line) { return line.time < selection.since; });
  if (selection.tail != 0 && lines.size() > selection.tail)
    lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(selection.tail));
  return lines;
}

}  // namespace carve::runner
