#include "controller/services/orphans.h"

#include <algorithm>
#include <utility>

#include "os/log.h"
#include "os/user.h"

namespace carve::controller {
namespace {

using workload::ProgramState;

constexpr Ns look_interval = 10 * workload::second_ns;  // While there are no orphans.
constexpr Ns kill_after = 10 * workload::second_ns;     // From SIGTERM to SIGKILL.

ObjectKey key_of(const std::string& name, const ProgramOwner& owner) {
  const auto kind = objects::parse_kind(owner.kind);
  if (!kind) return {.kind = objects::Kind::service, .namespace_ = "default", .name = name};
  return {.kind = *kind, .namespace_ = owner.name_space, .name = owner.name};
}

}  // namespace

bool Orphans::turn(Ns now) {
  if (!orphans_.empty() || looked_at_ == 0 || now >= looked_at_ + look_interval) look(now);
  bool changed = false;
  for (auto it = orphans_.begin(); it != orphans_.end();) {
    auto& [name, orphan] = *it;
    const bool is_due = now >= orphan.found_at + grace_ || is_in_the_way(orphan.owner);
    if (loops_.adopt(name, orphan.owner))
      report(name, orphan.owner, objects::EventReason::orphan_adopted, "adopted");
    else if (!is_due || !end(name, orphan, now)) {
      ++it;
      continue;
    }
    it = orphans_.erase(it);
    changed = true;
  }
  return changed;
}

void Orphans::look(Ns now) {
  looked_at_ = now;
  std::erase_if(orphans_, [&](const auto& entry) { return loops_.has_record(entry.first); });
  for (const std::string& name : effects_.kept_programs()) {
    if (loops_.has_record(name) || orphans_.contains(name)) continue;
    const ProgramOwner owner = effects_.owner(name);
    orphans_[name] = {.owner = owner, .found_at = now};
    os::log::warning(os::cause_of_user(owner.owner_uid),
                     "program {} has no database record; it belongs to {}", name,
                     owner.kind.empty() ? "an unknown object" : text(key_of(name, owner)));
  }
}

// Returns whether an object with this name exists whose programs need the names of the orphans.
bool Orphans::is_in_the_way(const ProgramOwner& owner) const {
  const auto kind = objects::parse_kind(owner.kind);
  if (!kind) return false;
  if (objects_.find_named(*kind, owner.name)) return true;
  return std::ranges::any_of(objects_.workloads(),
                             [&](const auto& object) { return object->key.name == owner.name; });
}

bool Orphans::end(const std::string& name, Orphan& orphan, Ns now) {
  const auto program = effects_.program(name);
  if (!program) {
    os::log::debug("{}: {}", name, program.error().message);
    return false;
  }
  const auto report_once = [&] {
    if (!std::exchange(orphan.is_reported, true))
      report(name, orphan.owner, objects::EventReason::orphan_ended, "ended");
  };
  if (program->state == ProgramState::running) report_once();
  if (program->state == ProgramState::running) {
    const bool is_late = orphan.terminated_at != 0 && now >= orphan.terminated_at + kill_after;
    const auto sent = is_late ? effects_.kill(name) : effects_.terminate(name);
    if (!sent)
      os::log::warning(os::cause_of_user(orphan.owner.owner_uid), "{}: {}", name, sent.error().message);
    if (orphan.terminated_at == 0) orphan.terminated_at = now;
    return false;
  }
  if (!orphan.owner.node.empty()) {
    const auto slices = effects_.slices(orphan.owner.node);
    if (!slices) return false;  // The agent does not respond, so the slice may still be live.
    const auto slice = slices->find(name);
    if (slice != slices->end() && slice->second.workload == orphan.owner.name) {
      report_once();
      if (const auto ended = effects_.end_slice(orphan.owner.node, name); !ended)
        os::log::warning(os::cause_of_user(orphan.owner.owner_uid), "{}: {}", name, ended.error().message);
      return false;
    }
  }
  effects_.forget_program(name);
  return true;
}

void Orphans::report(const std::string& name, const ProgramOwner& owner, objects::EventReason reason,
                     const std::string& what) {
  const std::string message =
      fmt::format("program {} was {}, because its record is missing from the database", name, what);
  os::log::warning(os::cause_of_user(owner.owner_uid), "{}: {}", text(key_of(name, owner)), message);
  events_.add({key_of(name, owner), {reason, message}});
}

}  // namespace carve::controller
