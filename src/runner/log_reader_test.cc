#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runner/log_files.h"

namespace carve::runner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct WrittenLog {
  explicit WrittenLog(uint64_t max_file_bytes = 1000) : max_bytes(max_file_bytes) {
    char name[] = "/tmp/carve-reader-XXXXXX";
    path = mkdtemp(name);
  }
  ~WrittenLog() { std::filesystem::remove_all(path); }
  // Writes the lines from `first` to `last` as a running attempt would.
  void write(int first, int last) {
    LogWriter log = *LogWriter::open(path, max_bytes);
    for (int i = first; i <= last; ++i) log.write(LogStream::standard_output, fmt::format("{}\n", i), i);
  }
  void begin(uint32_t attempt) const {
    LogWriter log = *LogWriter::open(path, max_bytes);
    log.write(LogStream::system, attempt_mark(attempt) + "\n", 0);
  }
  std::filesystem::path path;
  uint64_t max_bytes;
};

std::vector<int> numbers(const std::vector<LogLine>& lines) {
  std::vector<int> out;
  for (const LogLine& line : lines) out.push_back(std::stoi(line.text));
  return out;
}
std::vector<int> from_to(int first, int last) {
  std::vector<int> out;
  for (int i = first; i <= last; ++i) out.push_back(i);
  return out;
}

TEST(LogFollower, returns_each_line_once_across_rotations) {
  WrittenLog log;
  log.begin(1);
  LogFollower follower(log.path, ".", {});
  EXPECT_THAT(follower.next(), IsEmpty());
  int next = 0;
  for (const int step : {1, 3, 10, 30, 60, 1, 20, 70}) {  // A file has about 25 lines.
    log.write(next, next + step - 1);
    EXPECT_EQ(numbers(follower.next()), from_to(next, next + step - 1));
    EXPECT_THAT(follower.next(), IsEmpty());
    next += step;
  }
}

TEST(LogFollower, reports_missing_lines_after_too_many_rotations) {
  WrittenLog log;
  LogFollower follower(log.path, ".", {});
  log.write(0, 9);
  EXPECT_EQ(numbers(follower.next()), from_to(0, 9));
  log.write(10, 499);
  std::vector<LogLine> got = follower.next();
  const auto gap = std::ranges::find(got, log_gap_line, &LogLine::text);
  ASSERT_NE(gap, got.end());
  EXPECT_EQ(gap->stream, LogStream::system);
  const int last_before = std::stoi(std::prev(gap)->text), first_after = std::stoi(std::next(gap)->text);
  got.erase(gap);
  EXPECT_EQ(got.front().text, "10") << "the open file is still readable";
  EXPECT_EQ(got.back().text, "499");
  std::vector<int> wanted = from_to(10, last_before);
  std::ranges::copy(from_to(first_after, 499), std::back_inserter(wanted));
  EXPECT_EQ(numbers(got), wanted);
  EXPECT_GT(first_after, last_before + 1);
}

TEST(LogFollower, reads_a_long_attempt_in_pieces_from_its_first_line) {
  WrittenLog log;
  log.begin(1);
  log.write(0, 9);
  log.begin(2);
  log.write(10, 99);  // Across four files.
  LogFollower follower(log.path, ".", {});
  std::vector<int> got;
  for (std::vector<int> piece; !(piece = numbers(follower.next(1))).empty();) {
    EXPECT_LT(piece.size(), 40u);
    std::ranges::copy(piece, std::back_inserter(got));
  }
  EXPECT_EQ(got, from_to(10, 99));
  log.write(100, 500);  // Meanwhile the file is deleted, but stays readable.
  got.clear();
  for (std::vector<LogLine> piece; !(piece = follower.next(1)).empty();)
    for (const LogLine& line : piece)
      if (line.text != log_gap_line) got.push_back(std::stoi(line.text));
  EXPECT_EQ(got.front(), 100);
  EXPECT_EQ(got.back(), 500);
}

TEST(LogFollower, starts_with_the_selected_lines_and_continues_with_the_next_attempt) {
  WrittenLog log(1 << 20);
  log.begin(1);
  log.write(0, 9);
  log.begin(2);
  log.write(10, 29);
  LogFollower follower(log.path, ".", {.tail = 3});
  EXPECT_EQ(numbers(follower.next()), from_to(27, 29));
  log.write(30, 39);
  log.begin(3);
  log.write(40, 41);
  EXPECT_EQ(numbers(follower.next()), from_to(30, 41));
}

TEST(LogFollower, a_line_longer_than_a_piece_does_not_end_the_reading) {
  WrittenLog log(max_log_file_bytes);
  LogWriter writer = *LogWriter::open(log.path);
  writer.write(LogStream::standard_output, std::string(400 << 10, 'x') + "\nend\n", 1);
  LogFollower follower(log.path, ".", {});
  std::vector<size_t> sizes;
  for (std::vector<LogLine> piece; !(piece = follower.next(64 << 10)).empty();)
    for (const LogLine& line : piece) sizes.push_back(line.text.size());
  EXPECT_THAT(sizes, ElementsAre(400u << 10, 3u));
}

TEST(LogFollower, waits_for_the_rest_of_a_line_and_for_the_folder) {
  WrittenLog log;
  LogFollower follower(log.path, "log", {});
  EXPECT_THAT(follower.next(), IsEmpty());
  std::filesystem::create_directory(log.path / "log");
  std::ofstream file(log.path / "log/0.log");
  file << "2026 stdout F ab" << std::flush;
  EXPECT_THAT(follower.next(), IsEmpty());
  file << "c\n" << std::flush;
  const auto lines = follower.next();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text, "abc");
}

TEST(LogReader, does_not_join_a_partial_line_with_the_next_one) {
  const WrittenLog log;
  std::ofstream(log.path / "0.log") << "2026 stdout F 7\n2026 stdout F cut";
  log.begin(2);
  const auto before = read_log(log.path, ".", {.previous = true});
  ASSERT_EQ(before.size(), 2u);
  EXPECT_EQ(before[1].text, "cut");
  EXPECT_THAT(read_log(log.path, ".", {}), IsEmpty());
}

TEST(LogReader, holds_no_more_than_its_limit) {
  WrittenLog log(max_log_file_bytes);
  {
    LogWriter writer = *LogWriter::open(log.path);
    const std::string line(1000, 'x');
    for (int i = 0; i < 30'000; ++i)
      writer.write(LogStream::standard_output, fmt::format("{} {}\n", i, line), i);
    writer.write(LogStream::standard_error, std::string(3 * max_joined_line_bytes, 'y'), 0);
    writer.finish(0);
  }
  size_t bytes = 0;
  const auto lines = read_log(log.path, ".", {});
  for (const LogLine& line : lines) {
    EXPECT_LE(line.text.size(), max_joined_line_bytes + max_log_line_bytes);
    bytes += line.text.size();
  }
  EXPECT_LE(bytes, max_read_bytes);
  EXPECT_GT(bytes, max_read_bytes / 2);
}

TEST(LogReader, keeps_short_lines_up_to_the_line_limit) {
  WrittenLog log(max_log_file_bytes);
  const int count = static_cast<int>(max_read_lines) + 1000;
  log.write(1, count);
  const auto lines = read_log(log.path, ".", {});
  ASSERT_EQ(lines.size(), max_read_lines);
  EXPECT_EQ(lines.front().text, "1001");
  EXPECT_THAT(read_log(log.path, ".", {.tail = 0}), IsEmpty());
}

// A program can give its log any size without writing that much.
TEST(LogReader, reads_only_the_end_of_a_file_of_two_terabytes) {
  WrittenLog log;
  log.begin(1);
  log.write(0, 9);
  std::filesystem::resize_file(log.path / "0.log", uint64_t{2} << 40);
  {
    std::ofstream file(log.path / "0.log", std::ios::app);
    file << "\n2026-11-26T00:00:00.000000000Z stdout F last\n";
  }
  const auto got = read_log(log.path, ".", {});
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].text, log_gap_line);
  EXPECT_EQ(got[1].text, "last");
  for (const std::optional<size_t> tail : {std::optional<size_t>(), std::optional<size_t>(5)}) {
    LogFollower follower(log.path, ".", {.tail = tail});
    std::vector<LogLine> all;
    for (int i = 0; i < 100 && (all.empty() || all.back().text != "last"); ++i)
      for (LogLine& line : follower.next()) all.push_back(std::move(line));
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.back().text, "last");
  }
}

TEST(LogFollower, continues_after_a_program_has_enlarged_its_log) {
  WrittenLog log(1 << 20);
  LogFollower follower(log.path, ".", {});
  log.write(0, 9);
  EXPECT_EQ(numbers(follower.next()), from_to(0, 9));
  std::filesystem::resize_file(log.path / "0.log", uint64_t{2} << 40);
  {
    std::ofstream file(log.path / "0.log", std::ios::app);
    file << "\n2026-11-26T00:00:00.000000000Z stdout F 10\n";
  }
  std::vector<std::string> all;
  for (int i = 0; i < 100 && (all.empty() || all.back() != "10"); ++i)
    for (const LogLine& line : follower.next()) all.push_back(line.text);
  EXPECT_THAT(all, ElementsAre(std::string(log_gap_line), "10"));
}

TEST(LogReader, leaves_out_files_that_are_not_regular) {
  const WrittenLog log;
  std::filesystem::create_directory(log.path / "0.log");
  ASSERT_EQ(mkfifo((log.path / "1.log").c_str(), 0666), 0);
  std::filesystem::create_symlink("/etc/passwd", log.path / "2.log");
  std::ofstream(log.path / "3.log") << "2026 stdout F 5\n";
  EXPECT_EQ(numbers(read_log(log.path, ".", {})), from_to(5, 5));
}

}  // namespace
}  // namespace carve::runner
