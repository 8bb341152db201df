#include "controller/jobs/job_records.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace carve::controller {

std::vector<uint32_t> admitted_workers(const JobRecord& record, const std::vector<uint32_t>& wanted) {
  std::vector<uint32_t> out = wanted;
  std::istringstream words(record.workers);
  uint32_t admitted = 0;
  for (uint32_t& workers : out)
    if (words >> admitted) workers = std::min(workers, admitted);
  return out;
}

std::string workers_text(const std::vector<uint32_t>& workers) {
  return fmt::format("{}", fmt::join(workers, " "));
}

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

const JobRecord* JobRecords::find(const std::string& uid) const {
  const auto found = jobs_.find(uid);
  return found == jobs_.end() ? nullptr : &found->second;
}

JobRecord JobRecords::job(const std::string& uid) const {
  const JobRecord* const found = find(uid);
  return found == nullptr ? JobRecord{.uid = uid} : *found;
}

bool JobRecords::has_pods(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found != pods_.end() && !found->second.empty();
}

std::vector<PodRecord> JobRecords::pods(const std::string& uid) const {
  std::vector<PodRecord> out;
  if (const auto job = pods_.find(uid); job != pods_.end())
    for (const auto& [name, record] : job->second) out.push_back(record);
  return out;
}

bool JobRecords::has_pod(const std::string& program) const {
  return std::ranges::any_of(pods_, [&](const auto& entry) { return entry.second.contains(program); });
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

Outcome<void> JobRecords::remove(const PodRecord& record) {
  if (auto removed = store_->remove(record); !removed) return removed;
  pods_[record.uid].erase(record.program);
  return {};
}

void JobRecords::forget(const std::string& uid) {
  jobs_.erase(uid);
  pods_.erase(uid);
}

}  // namespace carve::controller
