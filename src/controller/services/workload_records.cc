#include "controller/services/workload_records.h"

#include <algorithm>

#include "core/invariant.h"
#include "wire/api/json.h"

namespace carve::controller {

Outcome<WorkloadRecords> WorkloadRecords::read(ControllerStore& store) {
  const auto workloads = store.all<WorkloadRecord>();
  if (!workloads) return tl::unexpected(workloads.error());
  const auto revisions = store.all<RevisionRecord>();
  if (!revisions) return tl::unexpected(revisions.error());
  const auto replicas = store.all<ReplicaRecord>();
  if (!replicas) return tl::unexpected(replicas.error());
  return WorkloadRecords(store, *workloads, *revisions, *replicas);
}

WorkloadRecords::WorkloadRecords(WorkloadJournal& journal, const std::vector<WorkloadRecord>& workloads,
                                 const std::vector<RevisionRecord>& revisions,
                                 const std::vector<ReplicaRecord>& replicas)
    : journal_(&journal) {
  for (const WorkloadRecord& r : workloads) workloads_[r.uid] = r;
  for (const RevisionRecord& r : revisions) revisions_[r.uid][r.revision] = revision_of(r);
  for (const ReplicaRecord& r : replicas) replicas_[r.uid][r.slice] = r;
}

WorkloadRecords::Revision WorkloadRecords::revision_of(const RevisionRecord& record) {
  auto form = api::read<objects::ServiceSpec>(record.spec, api::Reading::lenient);
  invariant(form.has_value(), "a stored revision was checked");
  return {.spec = record.spec, .form = std::move(*form)};
}

WorkloadRecord WorkloadRecords::workload(const std::string& uid) const {
  const auto found = workloads_.find(uid);
  return found != workloads_.end() ? found->second : WorkloadRecord{.uid = uid};
}

std::string WorkloadRecords::spec(const std::string& uid, uint32_t revision) const {
  const auto object = revisions_.find(uid);
  if (object == revisions_.end()) return "";
  const auto found = object->second.find(revision);
  return found == object->second.end() ? "" : found->second.spec;
}

const objects::ServiceSpec& WorkloadRecords::form(const std::string& uid, uint32_t revision) const {
  const auto object = revisions_.find(uid);
  invariant(object != revisions_.end() && object->second.contains(revision), "the revision is kept");
  return object->second.at(revision).form;
}

std::vector<ReplicaRecord> WorkloadRecords::replicas(const std::string& uid) const {
  std::vector<ReplicaRecord> out;
  if (const auto object = replicas_.find(uid); object != replicas_.end())
    for (const auto& [slice, record] : object->second) out.push_back(record);
  return out;
}

bool WorkloadRecords::has_replica(const std::string& slice) const {
  return std::ranges::any_of(replicas_, [&](const auto& entry) { return entry.second.contains(slice); });
}

std::vector<uint32_t> WorkloadRecords::program_ports() const {
  std::vector<uint32_t> out;
  for (const auto& [uid, replicas] : replicas_)
    for (const auto& [slice, record] : replicas)
      if (record.port != 0) out.push_back(record.port);
  return out;
}

std::vector<uint32_t> WorkloadRecords::endpoint_ports() const {
  std::vector<uint32_t> out;
  for (const auto& [uid, record] : workloads_)
    if (record.port != 0) out.push_back(record.port);
  return out;
}

Outcome<void> WorkloadRecords::write(const WorkloadRecord& record) {
  if (const auto found = workloads_.find(record.uid); found != workloads_.end() && found->second == record)
    return {};
  if (auto written = journal_->write(record); !written) return written;
  workloads_[record.uid] = record;
  return {};
}

Outcome<void> WorkloadRecords::write(const WorkloadRecord& record, const RevisionRecord& revision) {
  if (auto written = journal_->write(record, revision, max_kept_revisions); !written) return written;
  workloads_[record.uid] = record;
  auto& kept = revisions_[record.uid];
  kept[revision.revision] = revision_of(revision);
  // The same rule as in the database: keeps the newest revisions and those of replicas.
  const auto is_used = [&](uint32_t number) {
    return std::ranges::any_of(replicas_[record.uid],
                               [&](const auto& entry) { return entry.second.revision == number; });
  };
  size_t older = kept.size();
  for (auto it = kept.begin(); it != kept.end() && older > max_kept_revisions; --older)
    it = is_used(it->first) ? std::next(it) : kept.erase(it);
  return {};
}

Outcome<void> WorkloadRecords::write(const ReplicaRecord& record) {
  auto& known = replicas_[record.uid];
  if (const auto found = known.find(record.slice); found != known.end() && found->second == record) return {};
  if (auto written = journal_->write(record); !written) return written;
  known[record.slice] = record;
  return {};
}

Outcome<void> WorkloadRecords::remove(const ReplicaRecord& record) {
  if (auto removed = journal_->remove(record); !removed) return removed;
  replicas_[record.uid].erase(record.slice);
  return {};
}

void WorkloadRecords::forget(const std::string& uid) {
  workloads_.erase(uid);
  revisions_.erase(uid);
  replicas_.erase(uid);
}

}  // namespace carve::controller
