// The thread of history.db as the loop uses it. Its file may be missing, damaged, or in the way.
#include "controller/history_thread.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "controller/history/history_head.h"
#include "controller/history/testing/history_files.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

using testing::HasSubstr;

api::AgentReport report_of(uint64_t used_bytes) {
  api::AgentReport out;
  out.devices = {{.index = 0, .uuid = "GPU-1", .used_bytes = used_bytes}};
  return out;
}

HistoryQuery last_hour() {
  const int64_t now_ns = os::utc_ns();
  return {.kind = HistoryKind::device,
          .node = "n1",
          .metrics = {0},
          .from_ns = now_ns - now_ns % history_point_ns - history_hour_ns,
          .to_ns = now_ns + history_minute_ns,
          .step_ns = history_point_ns};
}

// Returns the response to a query. The thread takes it after the samples before it.
http::Response asked_of(os::Loop& loop, HistoryThread& thread) {
  std::optional<http::Response> out;
  const auto wanted = thread.ask(last_hour(), [&](http::Response response) {
    out = std::move(response);
    loop.stop();
  });
  loop.run();
  return std::move(*out);
}

std::string text_of(const http::Response& response) { return std::get<std::string>(response.content); }

TEST(HistoryThread, answers_with_the_current_minute_and_keeps_it_over_a_restart) {
  const HistoryFolder folder;
  os::Loop loop;
  {
    HistoryThread thread(loop, folder.path());
    EXPECT_THAT(text_of(asked_of(loop, thread)), HasSubstr("there is no history of device/n1/0"));
    thread.take("n1", report_of(5 << 20));
    const auto response = asked_of(loop, thread);
    EXPECT_EQ(response.status, 200u);
    EXPECT_THAT(text_of(response), HasSubstr("5242880"));
    EXPECT_THAT(text_of(response), HasSubstr("null"));
  }
  HistoryThread thread(loop, folder.path());
  EXPECT_THAT(text_of(asked_of(loop, thread)), HasSubstr("5242880"));
}

TEST(HistoryThread, answers_that_the_history_is_not_available_if_its_file_cannot_be_opened) {
  os::Loop loop;
  HistoryThread thread(loop, "/nowhere/history.db");
  thread.take("n1", report_of(1));
  const auto response = asked_of(loop, thread);
  EXPECT_EQ(response.status, 503u);
  EXPECT_THAT(text_of(response), HasSubstr("/nowhere/history.db"));
}

TEST(HistoryThread, begins_a_new_file_if_the_old_one_is_damaged) {
  const HistoryFolder folder;
  std::ofstream(folder.path()) << std::string(9000, 'x');
  os::Loop loop;
  HistoryThread thread(loop, folder.path());
  thread.take("n1", report_of(7 << 20));
  EXPECT_THAT(text_of(asked_of(loop, thread)), HasSubstr("7340032"));
  size_t moved = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.folder))
    moved += file.path().string().find("corrupt") != std::string::npos ? 1 : 0;
  EXPECT_EQ(moved, 1u);
}

TEST(HistoryThread, drops_polls_and_rejects_queries_while_the_disk_does_not_respond) {
  const HistoryFolder folder;
  // Opening a FIFO waits for a reader, as opening a file on a dead disk does.
  ASSERT_EQ(mkfifo(folder.path().c_str(), 0600), 0);
  os::Loop loop;
  std::ifstream reader;
  HistoryThread thread(loop, folder.path());
  const auto first = thread.ask(last_hour(), [](http::Response) {});
  for (size_t i = 0; i < HistoryThread::max_waiting_polls + 100; ++i) thread.take("n1", report_of(1));
  EXPECT_GE(thread.dropped_polls(), 99u);
  EXPECT_EQ(asked_of(loop, thread).status, 429u);
  reader.open(folder.path());  // Lets the thread go on.
}

}  // namespace
}  // namespace carve::controller
