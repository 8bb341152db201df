// The streams of `logs?follow=true`: the log files of an object's replicas, read while they are written. The
// owners of the files are not trusted (runner/log_files.h).
//
// The files are read in a thread, because a file system of a user may let it wait for any time.
//
// The loop of the API calls tick() several times a second. A stream gets lines while its caller takes them;
// the others wait here, at most those of one read of each log, and in the files. Replicas that come later are
// followed from their first line. A stream ends with an event of type `end` when its object is gone, or when
// its job has ended and all lines have been sent; and without one with the token of its caller.
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
// A stream ends if a line finds no room in its queue, so a line of the greatest length has room beside these.
inline constexpr size_t max_queued_log_bytes = 448 << 10;
static_assert(max_queued_log_bytes + runner::max_joined_line_bytes < http::max_stream_queue_bytes);
inline constexpr size_t max_log_bytes_per_read = 1 << 20;   // Of all logs of a stream together, about.
inline constexpr size_t min_log_bytes_per_read = 64 << 10;  // Of one.

// Returns whether the query asks for the program's log.
bool selects(const LogQuery&, const ObjectProgram&);
// Returns whose files the logs of the object are: a key of Workers.
std::string log_reader_key(const Object&);

class LogStreams {
 public:
  // Runs `work` in a thread, and on the loop what it returned, or `late` (Workers::run). Returns false if it
  // does neither.
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

  // Returns a stream that begins with the present lines which the query selects. The object exists.
  http::EventStream begin(const Object&, const LogQuery&);
  void tick();

 private:
  struct Followed {
    ObjectKey key;
    std::string uid;
    LogQuery query;
    // By slice; of the thread while it reads.
    std::shared_ptr<std::map<std::string, runner::LogFollower>> logs =
        std::make_shared<std::map<std::string, runner::LogFollower>>();
    std::deque<std::string> waiting = {};  // Lines that are read and not sent.
    http::Stream* stream = nullptr;
    bool is_reading = false;
    bool is_complete = false;  // A read that began after the end of the object's job found no line.
    bool is_late = false;      // A read was not finished in time.
  };
  using All = std::map<uint64_t, std::shared_ptr<Followed>>;

  // Begins to read new lines of all replicas that the object has now.
  void begin_read(const std::shared_ptr<Followed>&, const Object&,
                  const runner::LogSelection& of_new_replicas);
  static void send_waiting(Followed&);

  const ObjectRegistry& objects_;
  std::function<std::string(const std::string& slice)> directory_of_;
  Run run_;
  uint64_t next_ = 0;
  std::shared_ptr<All> all_ = std::make_shared<All>();  // Subscriptions know it weakly.
};

}  // namespace carve::controller
