#include "controller/jobs/job_records.h"

namespace carve::controller {

Outcome<JobRecords> JobRecords::read(ControllerStore& store) {
  JobRecords out(store);
  auto jobs = store.all<JobRecord>();
  if (!jobs) return tl::unexpected(jobs.error());
  for (JobRecord& r : *jobs) out.jobs_[r.uid] = r;
  auto pods = store.all<PodRecord>();
  if (!pods) return tl::unexpected(pods.error());
  for (PodRecord& r : *pods) out.pods_[r.uid][r.program] = r;
  return out;
}

JobRecord JobRecords::job(const std::string& uid) const {
  const auto found = jobs_.find(uid);
  return found != jobs_.end() ? found->second : JobRecord{.uid = uid};
}

std::vector<PodRecord> JobRecords::pods(const std::string& uid) const {
  std::vector<PodRecord> out;
  if (const auto job = pods_.find(uid); job != pods_.end())
    for (const auto& [name, record] : job->second) out.push_back(record);
  return out;
}

std::vector<uint32_t> JobRecords::ports() const {
  std::vector<uint32_t> out;
  for (const auto& [uid, record] : jobs_)
    if (record.port != 0 && record.finished_ns == 0) out.push_back(record.port);
  return out;
}

Outcome<void> JobRecords::write(const JobRecord& record) {
  if (const auto found = jobs_.find(record.uid); found != jobs_.end() && found->second == record) return {};
  if (auto written = store_->write(record); !written) return written;
  jobs_[record.uid] = record;
  return {};
}

Outcome<void> JobRecords::write(const PodRecord& record) {
  auto& known = pods_[record.uid];
  if (const auto found = known.find(record.program); found != known.end() && found->second == record)
    return {};
  if (auto written = store_->write(record); !written) return written;
  known[record.program] = record;
  return {};
}

void JobRecords::forget(const std::string& uid) {
  jobs_.erase(uid);
  pods_.erase(uid);
}

}  // namespace carve::controller
