// The thread of history.db: it takes the samples of the polls, writes a minute when it is over, and answers
// queries. The loop only hands over samples, and drops them if the thread is far behind, for example because
// the disk doesn't respond. If the file can't be written, the history of that time is lost.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "controller/history/history_query.h"
#include "http/message.h"
#include "os/loop.h"
#include "os/worker.h"
#include "wire/api/agent_report.h"

namespace carve::controller {

class HistoryThread {
 public:
  // `path` is the path of history.db, which the thread opens.
  HistoryThread(const os::Loop&, std::string path);
  ~HistoryThread();  // Writes the current minute. Waits for the work in progress.
  HistoryThread(const HistoryThread&) = delete;
  HistoryThread& operator=(const HistoryThread&) = delete;

  // Takes the samples of a poll. Never waits. For the loop's thread.
  void take(const std::string& node, const api::AgentReport&);

  using Answer = std::function<void(http::Response)>;
  // Passes the history to `answer` on the loop, unless the returned value is destroyed first. Rejects the
  // request if `max_waiting_queries` tasks are waiting.
  std::shared_ptr<void> ask(HistoryQuery, Answer);

  // Polls that were dropped because `max_waiting_polls` tasks were waiting.
  uint64_t dropped_polls() const { return dropped_polls_; }

  static constexpr size_t max_waiting_polls = 256;
  static constexpr size_t max_waiting_queries = 64;

 private:
  struct Books;  // Used only by the thread, and by the destructor after the thread has ended.

  const os::Loop& loop_;
  const int64_t
      utc_offset_ns_;  // UTC minus CLOCK_MONOTONIC at the start, so that clock steps have no effect.
  uint64_t dropped_polls_ = 0;
  const std::unique_ptr<Books> books_;
  std::optional<os::Worker> worker_;  // Declared last because its thread uses the other members.
};

}  // namespace carve::controller
