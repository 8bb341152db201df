#include "controller/log_streams.h"

#include <algorithm>

#include "os/clock.h"
#include "runner/supervisor_state.h"
#include "wire/objects/job_object.h"

namespace carve::controller {

bool selects(const LogQuery& query, const ObjectProgram& program) {
  return (!query.replica || *query.replica == program.index) &&
         (query.role.empty() || query.role == program.role);
}

bool LogStreams::read(Followed& f, const Object& object, const runner::LogSelection& of_new_replicas) const {
  const std::vector<ObjectProgram> programs = programs_of(object);
  for (const ObjectProgram& program : programs)
    if (selects(f.query, program) && !f.logs.contains(program.name))
      f.logs.emplace(program.name, runner::LogFollower(directory_of_(program.name), runner::log_folder_name,
                                                       of_new_replicas));
  const bool has_prefix = std::ranges::count_if(programs, [&](const auto& one) {
                            return f.query.role.empty() || f.query.role == one.role;
                          }) > 1;
  const size_t bytes_of_each =
      std::max(min_log_bytes_per_read, max_log_bytes_per_read / std::max(f.logs.size(), size_t{1}));
  bool has_read = false;
  for (auto log = f.logs.begin(); log != f.logs.end();) {
    const std::string& slice = log->first;
    for (const runner::LogLine& line : log->second.next(bytes_of_each)) {
      has_read = true;
      if (f.query.plain && line.stream == runner::LogStream::system && line.text != runner::log_gap_line)
        continue;
      f.waiting.push_back(has_prefix ? slice + " " + line.text : line.text);
    }
    const bool is_gone = std::ranges::find(programs, slice, &ObjectProgram::name) == programs.end();
    log = is_gone ? f.logs.erase(log) : std::next(log);
  }
  return has_read;
}

http::EventStream LogStreams::begin(const Object& object, const LogQuery& query) {
  auto followed = std::make_shared<Followed>(Followed{.key = object.key, .uid = object.uid, .query = query});
  read(*followed, object,
       {.tail = query.tail,
        .since = query.since_ns == 0 ? "" : os::rfc3339(query.since_ns, os::Decimals::nanoseconds)});
  http::EventStream out;
  for (std::string& line : followed->waiting) out.first.push_back({.id = "", .data = std::move(line)});
  followed->waiting.clear();
  out.subscribe = [this, followed](http::Stream& to) {
    followed->stream = &to;
    const uint64_t number = ++next_;
    all_->emplace(number, followed);
    return std::shared_ptr<void>(followed.get(), [all = std::weak_ptr(all_), number](void*) {
      if (const auto streams = all.lock()) streams->erase(number);
    });
  };
  return out;
}

void LogStreams::tick() {
  for (const auto& [number, f] : *all_) {
    if (f->query.may_continue && !f->query.may_continue()) {
      f->waiting.clear();
      f->stream->end();
      continue;
    }
    const auto object = objects_.find(f->key);
    const bool exists = object && object->uid == f->uid;
    const bool may_have_more = !f->waiting.empty() || (exists && read(*f, *object, {}));
    // A job's programs wrote their last lines before the object says that it has ended.
    const bool ends = !may_have_more && (!exists || is_finished_job(*object));
    while (!f->waiting.empty() && f->stream->queued_bytes() < max_queued_log_bytes) {
      f->stream->send({.id = "", .data = std::move(f->waiting.front())});
      f->waiting.pop_front();
    }
    if (!ends) continue;
    f->stream->send({.id = "", .data = "", .type = std::string(objects::log_end_event)});
    f->stream->end();
  }
}

}  // namespace carve::controller
