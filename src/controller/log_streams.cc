#include "controller/log_streams.h"

#include <algorithm>

#include "objects/job_object.h"
#include "os/clock.h"
#include "runner/supervisor_state.h"

namespace carve::controller {

bool selects(const LogQuery& query, const ObjectProgram& program) {
  return (!query.replica || *query.replica == program.index) &&
         (query.role.empty() || query.role == program.role);
}

namespace {

// The inputs of one read. The read does not access the stream object.
struct LogRead {
  struct Program {
    std::string name, directory;
  };
  std::vector<Program> programs;  // The programs that the query selects.
  runner::LogSelection of_new_replicas;
  bool has_prefix = false;
  bool plain = false;
  bool has_times = false;
};

using Logs = std::map<std::string, runner::LogFollower>;

std::vector<std::string> read_lines(const LogRead& wanted, Logs& logs) {
  for (const LogRead::Program& program : wanted.programs)
    if (!logs.contains(program.name))
      logs.emplace(program.name,
                   runner::LogFollower(program.directory, runner::log_folder_name, wanted.of_new_replicas));
  const size_t bytes_of_each =
      std::max(min_log_bytes_per_read, max_log_bytes_per_read / std::max(logs.size(), size_t{1}));
  std::vector<std::string> out;
  for (auto log = logs.begin(); log != logs.end();) {
    const std::string& slice = log->first;
    for (const runner::LogLine& line : log->second.next(bytes_of_each))
      if (!wanted.plain || line.stream != runner::LogStream::system || line.text == runner::log_gap_line)
        out.push_back((wanted.has_prefix ? slice + " " : "") +
                      (wanted.has_times ? runner::timed_text(line) : line.text));
    const bool is_gone =
        std::ranges::find(wanted.programs, slice, &LogRead::Program::name) == wanted.programs.end();
    log = is_gone ? logs.erase(log) : std::next(log);
  }
  return out;
}

}  // namespace

std::string log_reader_key(const Object& object) {
  return fmt::format("{} {}", object.owner_uid, object.account);
}

void LogStreams::begin_read(const std::shared_ptr<Followed>& f, const Object& object,
                            const runner::LogSelection& of_new_replicas) {
  LogRead wanted{.programs = {},
                 .of_new_replicas = of_new_replicas,
                 .plain = f->query.plain,
                 .has_times = f->query.has_times};
  size_t of_role = 0;
  for (const ObjectProgram& program : programs_of(object)) {
    of_role += f->query.role.empty() || f->query.role == program.role;
    if (selects(f->query, program)) wanted.programs.push_back({program.name, directory_of_(program.name)});
  }
  wanted.has_prefix = of_role > 1;
  const bool is_over = is_finished_job(object);
  f->is_reading = true;
  const auto work = [f, wanted = std::move(wanted), is_over, logs = f->logs]() -> Act {
    auto lines = std::make_shared<std::vector<std::string>>(read_lines(wanted, *logs));
    return [f, lines, is_over] {
      f->is_reading = false;
      f->is_complete = is_over && lines->empty();
      std::ranges::move(*lines, std::back_inserter(f->waiting));
      if (f->stream != nullptr) send_waiting(*f);
    };
  };
  // If the task is rejected, the log is read at the next tick.
  if (!run_(log_reader_key(object), work, [f] { f->is_late = true; })) f->is_reading = false;
}

http::EventStream LogStreams::begin(const Object& object, const LogQuery& query) {
  auto followed = std::make_shared<Followed>(Followed{.key = object.key, .uid = object.uid, .query = query});
  begin_read(followed, object,
             {.tail = query.tail,
              .since = query.since_ns == 0 ? "" : os::rfc3339(query.since_ns, os::Decimals::nanoseconds)});
  http::EventStream out;
  for (std::string& line : followed->waiting) out.first.push_back({.id = "", .data = std::move(line)});
  followed->waiting.clear();
  out.subscribe = [this, followed](http::Stream& to) {
    followed->stream = &to;
    const uint64_t number = ++next_;
    all_->emplace(number, followed);
    return std::shared_ptr<void>(followed.get(), [all = std::weak_ptr(all_), followed, number](void*) {
      followed->stream = nullptr;  // A read may still be in progress.
      if (const auto streams = all.lock()) streams->erase(number);
    });
  };
  return out;
}

void LogStreams::send_waiting(Followed& f) {
  while (!f.waiting.empty() && f.stream->queued_bytes() < max_queued_log_bytes) {
    f.stream->send({.id = "", .data = std::move(f.waiting.front())});
    f.waiting.pop_front();
  }
}

void LogStreams::tick() {
  const All all = *all_;  // A read may finish immediately.
  for (const auto& [number, f] : all) {
    if (f->is_late || (f->query.may_continue && !f->query.may_continue())) {
      f->waiting.clear();
      f->stream->end();
      continue;
    }
    const auto object = objects_.find(f->key);
    const bool exists = object && object->uid == f->uid;
    // A job's programs write their last lines before the object is finished.
    const bool is_over = !exists || is_finished_job(*object);
    const bool had_lines = !f->waiting.empty();
    if (exists && !had_lines && !f->is_reading && !(is_over && f->is_complete)) begin_read(f, *object, {});
    send_waiting(*f);
    if (had_lines || f->is_reading || !is_over || (exists && !f->is_complete)) continue;
    f->stream->send({.id = "", .data = "", .type = std::string(objects::log_end_event)});
    f->stream->end();
  }
}

}  // namespace carve::controller
