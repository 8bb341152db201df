#include "controller/history_thread.h"

#include <utility>

#include "controller/api/api_call.h"
#include "controller/history/history_head.h"
#include "controller/history/history_report.h"
#include "controller/history/history_samples.h"
#include "controller/history/history_store.h"
#include "os/capabilities.h"
#include "os/clock.h"
#include "os/log.h"

namespace carve::controller {

// history.db, which is opened when it is first needed, and the current minute.
struct HistoryThread::Books {
  explicit Books(std::string where) : path(std::move(where)) {}

  // Returns the store, or null with the reason in `problem`.
  HistoryStore* open(int64_t now_ns);
  void write(const std::optional<HistoryMinute>&);
  http::Response answer(const HistoryQuery&, int64_t now_ns);
  // Logs a new problem, and the end of one.
  void note(const std::string& now);

  const std::string path;
  std::optional<HistoryStore> store;
  HistoryHead head;
  std::string problem;
  uint64_t logged_skipped = 0, logged_dropped = 0;
};

void HistoryThread::Books::note(const std::string& now) {
  if (now == problem) return;
  if (!now.empty())
    os::log::error("{}; the history of this time is lost", now);
  else
    os::log::info("the history is written again");
  problem = now;
}

HistoryStore* HistoryThread::Books::open(int64_t now_ns) {
  if (store) return &*store;
  auto opened = HistoryStore::open(path, now_ns);
  if (!opened) {
    note(opened.error().message);
    return nullptr;
  }
  if (!opened->moved_aside.empty())
    os::log::error("the history database was damaged ({}); it was moved to {}, and a new one was begun",
                   opened->damage, opened->moved_aside);
  return &store.emplace(std::move(opened->store));
}

void HistoryThread::Books::write(const std::optional<HistoryMinute>& minute) {
  if (!minute) return;
  HistoryStore* open_store = open(minute->from_ns);
  if (open_store == nullptr) return;
  const auto written = open_store->write(*minute);
  note(written ? "" : written.error().message);
  if (const uint64_t skipped = open_store->skipped(); skipped > std::exchange(logged_skipped, skipped))
    os::log::warning("the history database {} has damaged blocks; {} were skipped", path, skipped);
  if (const uint64_t dropped = head.dropped(); dropped > std::exchange(logged_dropped, dropped))
    os::log::warning("more than {} slices and devices; no history is kept of the others", max_live_series);
  // The next use opens the file again, which moves a damaged file aside.
  if (!written && written.error().kind == FailureKind::failed_precondition) store.reset();
}

http::Response HistoryThread::Books::answer(const HistoryQuery& query, int64_t now_ns) {
  HistoryStore* open_store = open(now_ns);
  if (open_store == nullptr) return refuse(FailureKind::unavailable, problem);
  const auto report = history_report(*open_store, head, query);
  if (!report && report.error().kind == FailureKind::failed_precondition) store.reset();
  return report ? document(*report) : refuse(report.error());
}

HistoryThread::HistoryThread(const os::Loop& loop, std::string path)
    : loop_(loop),
      utc_offset_ns_(os::utc_ns() - os::monotonic_ns()),
      books_(std::make_unique<Books>(std::move(path))) {
  worker_.emplace(os::WorkerSettings{.turn =
                                         [this] {
                                           const int64_t now_ns = os::monotonic_ns() + utc_offset_ns_;
                                           books_->write(books_->head.advance(now_ns));
                                           return history_point_ns;
                                         },
                                     .begin = [] { (void)os::keep_capabilities({}); }});
}

HistoryThread::~HistoryThread() {
  worker_.reset();
  books_->write(books_->head.finish());
}

void HistoryThread::take(const std::string& node, const api::AgentReport& report) {
  if (worker_->waiting_tasks() >= max_waiting_polls) {
    ++dropped_polls_;
    return;
  }
  worker_->run([this, samples = history_samples(node, report), now_ns = os::monotonic_ns() + utc_offset_ns_] {
    books_->write(books_->head.add(samples, now_ns));
  });
}

std::shared_ptr<void> HistoryThread::ask(HistoryQuery query, Answer answer) {
  auto wanted = std::make_shared<int>();
  const auto reply = [&loop = loop_, held = std::weak_ptr(wanted),
                      answer = std::move(answer)](http::Response response) {
    loop.post([held, answer, response = std::make_shared<http::Response>(std::move(response))] {
      if (!held.expired()) answer(std::move(*response));
    });
  };
  if (worker_->waiting_tasks() >= max_waiting_queries)
    reply(refuse(FailureKind::resource_exhausted,
                 "too many requests for the history are waiting; try again later"));
  else
    worker_->run([this, query = std::move(query), reply, held = std::weak_ptr(wanted)] {
      if (!held.expired()) reply(books_->answer(query, os::monotonic_ns() + utc_offset_ns_));
    });
  return wanted;
}

}  // namespace carve::controller
