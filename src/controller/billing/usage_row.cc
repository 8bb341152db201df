#include "controller/billing/usage_row.h"

#include <algorithm>

#include "wire/api/json.h"

namespace carve::controller {
namespace {

using ledger::UsageRecord;

std::string label(const UsageRecord& record, const char* key) {
  const auto found = record.slice.labels.find(key);
  return found == record.slice.labels.end() ? "" : found->second;
}

// The labels that the controller sets on the slices of its workloads.
constexpr std::string_view own_labels[] = {"carve.dev/kind",    "carve.dev/name",    "carve.dev/namespace",
                                           "carve.dev/queue",   "carve.dev/role",    "carve.dev/index",
                                           "carve.dev/replica", "carve.dev/revision"};

struct LabelColumn {
  UsageLabels labels;
};

std::string label_column(const UsageRecord& record) {
  LabelColumn out;
  for (const auto& [key, value] : record.slice.labels)
    if (std::ranges::find(own_labels, key) == std::end(own_labels)) out.labels[key] = value;
  return out.labels.empty() ? "" : api::write(out);
}

bool fits_columns(const UsageRecord& record) {
  return record.slice.parts.size() == 1 && record.periods.empty() &&
         (!record.to || record.to->boot_id == record.from.boot_id);
}

// Returns the record that the columns describe.
UsageRecord record_of_columns(UsageRow row) {
  UsageRecord out;
  out.id = row.id;
  out.slice.exclusive = row.exclusive;
  out.slice.parts = {{.device = row.device,
                      .memory = row.memory,
                      .share = row.share,
                      .spill = {},
                      .usable = row.usable,
                      .model = std::move(row.model)}};
  if (row.end_ns != 0)
    out.to = ledger::Stamp{.utc_ns = row.end_ns,
                           .boot_id = row.boot_id,
                           .monotonic_ns = row.from_monotonic_ns + (row.end_ns - row.from_ns)};
  out.from = {
      .utc_ns = row.from_ns, .boot_id = std::move(row.boot_id), .monotonic_ns = row.from_monotonic_ns};
  out.busy_ns = row.busy_ns;
  out.peak_bytes = row.peak_bytes;
  return out;
}

}  // namespace

namespace {

// Sets the columns of a container's record on Kubernetes. Carve's labels of the pod name its workload.
void set_pod(UsageRow& row, const PodContainer& holder) {
  row.name_space = holder.namespace_;
  row.pod = holder.name;
  row.container = holder.container;
  row.prepaid = false;
  if (row.kind != "slice" && !row.name.empty()) return;
  row.kind = "pod";
  row.name = holder.name;
}

}  // namespace

UsageRow usage_row(const std::string& node, uint32_t ledger, const UsageRecord& record,
                   const std::function<bool(const std::string& queue)>& is_prepaid) {
  const Slice& slice = record.slice;
  const std::string kind = label(record, "carve.dev/kind");
  UsageRow out{.node = node,
               .ledger = ledger,
               .id = record.id,
               .account = slice.account,
               .owner_uid = slice.owner,
               .name_space = label(record, "carve.dev/namespace"),
               .kind = kind.empty() ? "slice" : kind,
               .name = kind.empty() ? slice.name : label(record, "carve.dev/name"),
               .pod = slice.name,
               .queue = label(record, "carve.dev/queue")};
  if (slice.holder.pod)
    set_pod(out, *slice.holder.pod);
  else
    out.prepaid = !out.queue.empty() && is_prepaid(out.queue);
  out.exclusive = slice.exclusive;
  if (!slice.parts.empty()) {
    const SlicePart& part = slice.parts.front();
    out.device = part.device;
    out.model = part.model;
    out.usable = part.usable;
    out.memory = part.memory;
    out.share = part.share;
  }
  out.from_ns = record.from.utc_ns;
  out.from_monotonic_ns = record.from.monotonic_ns;
  out.boot_id = record.from.boot_id;
  if (record.to) out.end_ns = utc_end_ns(record);
  out.busy_ns = record.busy_ns;
  out.peak_bytes = record.peak_bytes;
  if (!fits_columns(record)) out.details = api::write(record);
  out.labels = label_column(record);
  return out;
}

// Periods that cross a boot are measured one by one, as in invoices (bill/invoice.cc).
int64_t utc_end_ns(const UsageRecord& record) {
  int64_t end = record.from.utc_ns;
  const ledger::Stamp* last = &record.from;
  for (const ledger::Period& period : record.periods) {
    end += ledger::duration_ns(*last, period.to);
    last = &period.to;
  }
  return end + ledger::duration_ns(*last, *record.to);
}

UsageLabels labels_of(const UsageRow& row) {
  if (row.labels.empty()) return {};
  auto column = api::read<LabelColumn>(row.labels, api::Reading::lenient);
  return column ? std::move(column->labels) : UsageLabels();
}

Outcome<bill::Usage> usage_of(UsageRow row) {
  UsageLabels labels = labels_of(row);
  bill::Usage out{.node = ledger_name(row),
                  .record = {},
                  .account = std::move(row.account),
                  .name_space = std::move(row.name_space),
                  .kind = std::move(row.kind),
                  .name = std::move(row.name),
                  .queue = std::move(row.queue),
                  .prepaid = row.prepaid,
                  .devices = {}};
  std::string pod = std::move(row.pod), container = std::move(row.container);
  const uint32_t owner = row.owner_uid;
  if (row.details.empty()) {
    out.record = record_of_columns(std::move(row));
  } else {
    auto record = api::read<UsageRecord>(row.details, api::Reading::lenient);
    if (!record)
      return failure(FailureKind::invalid_argument, "record {} of node {}: {}", row.id, ledger_name(row),
                     record.error());
    out.record = std::move(*record);
  }
  // The holder of the columns; that of the JSON is the same.
  if (!container.empty() && !out.record.slice.holder)
    out.record.slice.holder.pod =
        PodContainer{.namespace_ = out.name_space, .name = pod, .uid = "", .container = std::move(container)};
  out.record.slice.name = std::move(pod);
  out.record.slice.owner = owner;
  out.record.slice.labels = std::move(labels);
  for (const SlicePart& part : out.record.slice.parts)
    out.devices.push_back({.uuid = part.device, .model = part.model, .usable = part.usable});
  return out;
}

std::string ledger_name(const UsageRow& row) {
  return row.ledger == 1 ? row.node : fmt::format("{}@{}", row.node, row.ledger);
}

// A node's name contains no '@'.
std::string node_name(const std::string& ledger_name) { return ledger_name.substr(0, ledger_name.find('@')); }

}  // namespace carve::controller
