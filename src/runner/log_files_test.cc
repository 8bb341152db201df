#include "runner/log_files.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace carve::runner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t at = 1'795'443'215'123'456'789;  // 2026-11-23T14:13:35.123456789Z

struct Folder {
  std::filesystem::path path;
  Folder() {
    char name[] = "/tmp/carve-log-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string text(int number) const {
    std::ifstream in(path / fmt::format("{}.log", number));
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

std::vector<std::string> texts(const std::vector<LogLine>& lines) {
  std::vector<std::string> out;
  for (const LogLine& line : lines) out.push_back(line.text);
  return out;
}

TEST(LogFiles, a_line_has_its_time_and_stream_whatever_the_size_of_the_pieces) {
  const Folder folder;
  LogWriter log = *LogWriter::open(folder.path);
  log.write(LogStream::standard_output, "hel", at);
  log.write(LogStream::standard_error, "no\n", at);
  log.write(LogStream::standard_output, "lo\n\nrest", at);
  log.finish(at);
  const std::string time = "2026-11-23T14:13:35.123456789Z";
  EXPECT_EQ(folder.text(0), time + " stderr F no\n" + time + " stdout F hello\n" + time + " stdout F \n" +
                                time + " stdout F rest\n");
}

// The writer asserts that no line contains a line end.
TEST(LogFiles, any_bytes_in_any_pieces_become_lines_of_their_stream) {
  const Folder folder;
  LogWriter log = *LogWriter::open(folder.path);
  std::mt19937 dice(1);
  size_t ends = 0;
  for (unsigned i = 0; i < 2000; ++i) {
    std::string bytes(dice() % (dice() % 50 == 0 ? 3 * max_log_line_bytes : 200), 'x');
    for (char& c : bytes)
      if (dice() % 40 == 0) c = dice() % 2 == 0 ? '\n' : static_cast<char>(dice());
    ends += static_cast<size_t>(std::ranges::count(bytes, '\n'));
    log.write(LogStream::standard_output, bytes, at);
  }
  log.finish(at);
  const std::string written = folder.text(0);
  size_t lines = 0, whole = 0;
  for (size_t begin = 0, end; (end = written.find('\n', begin)) != written.npos; begin = end + 1, ++lines) {
    const std::string_view line = std::string_view(written).substr(begin, end - begin);
    ASSERT_TRUE(line.starts_with("2026-11-23T14:13:35.123456789Z stdout ")) << line;
    whole += line[38] == 'F' ? 1 : 0;
  }
  EXPECT_GE(lines, whole);
  EXPECT_LE(whole - ends, 1u) << "the last line may lack its end";
}

TEST(LogFiles, a_long_line_is_split_and_joined_again) {
  const Folder folder;
  const std::string line(max_log_line_bytes * 2 + 5, 'x');
  LogWriter log = *LogWriter::open(folder.path);
  log.write(LogStream::standard_output, line + "\n", at);
  EXPECT_THAT(texts(read_log(folder.path.parent_path(), folder.path.filename(), {})), ElementsAre(line));
}

TEST(LogFiles, rotates_and_keeps_the_newest_files) {
  const Folder folder;
  LogWriter log = *LogWriter::open(folder.path, 1000);
  for (int i = 0; i < 500; ++i) log.write(LogStream::standard_output, fmt::format("line {}\n", i), at + i);
  for (unsigned n = 0; n < max_log_files; ++n) EXPECT_LE(folder.text(static_cast<int>(n)).size(), 1000u) << n;
  EXPECT_EQ(folder.text(max_log_files), "") << "there are no more files";
  const auto lines = texts(read_log(folder.path.parent_path(), folder.path.filename(), {}));
  EXPECT_EQ(lines.back(), "line 499");
  EXPECT_GT(lines.size(), 80u);
  EXPECT_LT(lines.size(), 130u);
  EXPECT_THAT(texts(read_log(folder.path.parent_path(), folder.path.filename(), {.tail = 2})),
              ElementsAre("line 498", "line 499"));
}

TEST(LogFiles, reads_only_the_lines_of_the_selected_attempt) {
  const Folder folder;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    LogWriter log = *LogWriter::open(folder.path);
    log.write(LogStream::system, fmt::format("attempt {} started\n", attempt), at + attempt);
    log.write(LogStream::standard_output, fmt::format("of {}\n", attempt), at + attempt);
  }
  EXPECT_THAT(texts(read_log(folder.path.parent_path(), folder.path.filename(), {})), ElementsAre("of 3"));
  EXPECT_THAT(texts(read_log(folder.path.parent_path(), folder.path.filename(), {.previous = true})),
              ElementsAre("of 2"));
  EXPECT_THAT(texts(read_log(folder.path.parent_path(), folder.path.filename(),
                             {.since = "2026-11-23T14:13:35.123456793Z"})),
              IsEmpty());
}

TEST(LogFiles, does_not_follow_links_to_files_of_another_user) {
  const Folder folder, other;
  std::ofstream(other.path / "0.log") << "2026 stdout F secret\n";
  std::filesystem::create_directory_symlink(other.path, folder.path / "log");
  EXPECT_THAT(read_log(folder.path, "log", {}), IsEmpty());
  std::filesystem::remove(folder.path / "log");
  std::filesystem::create_directory(folder.path / "log");
  std::filesystem::create_symlink(other.path / "0.log", folder.path / "log/0.log");
  EXPECT_THAT(read_log(folder.path, "log", {}), IsEmpty());
}

TEST(LogFiles, leaves_out_lines_in_another_format) {
  const Folder folder;
  std::ofstream(folder.path / "0.log")
      << "garbage\n2026 stdout F good\n2026 nothing F bad\n2026 stdout X bad\n\n\xff\n2026 stdout F";
  EXPECT_THAT(texts(read_log(folder.path.parent_path(), folder.path.filename(), {})), ElementsAre("good"));
  EXPECT_THAT(read_log(folder.path, "none", {}), IsEmpty());
}

}  // namespace
}  // namespace carve::runner
