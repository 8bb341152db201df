// The streams of `logs?follow=true`, which read the log files of an object's replicas while they are written.
// The owners of the files are not trusted (runner/log_files.h).
//
// The files are read in a thread, because a user's file system may block reads indefinitely.
//
// The API's loop calls tick() several times a second. A stream gets lines at the pace at which its caller
// reads them; the other lines wait in the files and here, where at most one read of each log is buffered.
// Replicas that are added later are followed from their first line. A stream ends with an event of type `end`
// when its object is gone, or when its job has ended and all lines have been sent. It ends without this event
// when the caller's token becomes invalid.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "controller/api/api_call.h"
#include "controller/objects/object_programs.h"
#include "runner/log_files.h"

namespace carve::controller {

inline constexpr int64_t log_stream_interval_ns = 200'000'000;
// A stream ends if a line does not fit into its queue, so the limit leaves room for one line of maximum
// length.
inline constexpr size_t max_queued_log_bytes = 448 << 10;
static_assert(max_queued_log_bytes + runner::max_joined_line_bytes < http::max_stream_queue_bytes);
inline constexpr size_t max_log_bytes_per_read =
    1 << 20;  // Approximate limit for all logs of a stream together.
inline constexpr size_t min_log_bytes_per_read = 64 << 10;  // For each log.

// Returns whether the query selects the program's log.
bool selects(const LogQuery&, const ObjectProgram&);
// Returns the owner of the object's log files, as a key of Workers.
std::string log_reader_key(const Object&);

class LogStreams {
 public:
  // Runs `work` in a thread and then, on the loop, either the function that it returned or `late`
  // (Workers::run). Returns false if it will run neither.
  using Act = std::function<void()>;
  using Run = std::function<bool(const std::string& key, std::function<Act()> work, Act late)>;
  static bool run_here(const std::string&, const std::function<Act()>& work, const Act&) {
    work()();
    return true;
  }

  // `directory_of` returns the directory of a replica's program.
  LogStreams(const ObjectRegistry& objects, std::function<std::string(const std::string& slice)> directory_of,
             Run run = run_here)
      : objects_(objects), directory_of_(std::move(directory_of)), run_(std::move(run)) {}

  // Returns a stream that begins with the current lines that the query selects. The object must exist.
  http::EventStream begin(const Object&, const LogQuery&);
  void tick();

 private:
  struct Followed {
    ObjectKey key;
    std::string uid;
    LogQuery query;
    // Keyed by slice. Used by the thread while it reads.
    std::shared_ptr<std::map<std::string, runner::LogFollower>> logs =
        std::make_shared<std::map<std::string, runner::LogFollower>>();
    std::deque<std::string> waiting = {};  // Lines that were read but not sent.
    http::Stream* stream = nullptr;
    bool is_reading = false;
    bool is_complete = false;  // A read that began after the job's end found no line.
    bool is_late = false;      // A read did not finish in time.
  };
  using All = std::map<uint64_t, std::shared_ptr<Followed>>;

  // Begins to read new lines of the object's current replicas.
  void begin_read(const std::shared_ptr<Followed>&, const Object&,
                  const runner::LogSelection& of_new_replicas);
  static void send_waiting(Followed&);

  const ObjectRegistry& objects_;
  std::function<std::string(const std::string& slice)> directory_of_;
  Run run_;
  uint64_t next_ = 0;
  std::shared_ptr<All> all_ = std::make_shared<All>();  // Subscriptions hold a weak pointer to it.
};

}  // namespace carve::controller
