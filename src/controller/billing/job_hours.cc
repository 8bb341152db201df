#include "controller/billing/job_hours.h"

namespace carve::controller {

Outcome<JobHours> job_hours(UsageStore& store, const bill::Tariffs& tariffs, const BilledJob& job,
                            const ledger::Stamp& now) {
  bill::Total sum;
  bool is_open = false;
  Failure unreadable;
  const auto done = store.of_workload(job.kind, job.name_space, job.name, [&](UsageRow&& row) {
    if (row.from_ns < job.created_ns) return true;
    const auto usage = usage_of(row);
    if (!usage) {
      unreadable = usage.error();
      return false;
    }
    ledger::Stamp until = now;
    if (row.end_ns == 0) {
      is_open = true;
      until = store.seen_at(row.node, row.ledger).value_or(now);
    }
    const bill::Invoice invoice = bill::invoice({&*usage, 1}, tariffs, {}, until);
    const bill::Total of_record = bill::total(invoice.lines);
    sum.gpu_hours += of_record.gpu_hours;
    sum.unpriced_ns += of_record.unpriced_ns;
    return true;
  });
  if (!done) return tl::unexpected(done.error());
  if (!unreadable.message.empty()) return tl::unexpected(unreadable);
  return JobHours{
      .gpu_hours = bill::text(sum.gpu_hours),
      .unpriced_seconds = bill::text(sum.unpriced_ns * bill::millionths_per_one / bill::second_ns),
      .is_open = is_open};
}

std::optional<JobHours> KnownJobHours::find(const std::string& uid) const {
  const os::MutexLock lock(mutex_);
  const auto found = hours_.find(uid);
  return found == hours_.end() ? std::nullopt : std::optional(found->second);
}

Outcome<void> KnownJobHours::update(UsageStore& store, const bill::Tariffs& tariffs,
                                    const std::vector<BilledJob>& jobs, const ledger::Stamp& now) {
  std::map<std::string, JobHours> computed;
  std::set<std::string> finished, final;
  for (const BilledJob& job : jobs) {
    if (job.is_finished) finished.insert(job.uid);
    if (final_.contains(job.uid)) {
      final.insert(job.uid);
      continue;
    }
    auto hours = job_hours(store, tariffs, job, now);
    if (!hours) return tl::unexpected(hours.error());
    if (!hours->is_open && seen_finished_.contains(job.uid)) final.insert(job.uid);
    computed[job.uid] = std::move(*hours);
  }
  seen_finished_ = std::move(finished);
  final_ = std::move(final);
  const os::MutexLock lock(mutex_);
  for (auto& [uid, hours] : computed) hours_[uid] = std::move(hours);
  std::erase_if(hours_, [&](const auto& known) {
    return !computed.contains(known.first) && !final_.contains(known.first);
  });
  return {};
}

}  // namespace carve::controller
