#include "controller/cluster/cluster_usage.h"

#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/pod_slices.h"
#include "os/log.h"

namespace carve::controller {
namespace {

using kubernetes::ObjectMeta;
using objects::EventReason;

constexpr unsigned undecided_reads_to_report = 10;

// Returns what two failures with the same cause have in common: "timed out after 10001 ms" without the number.
std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

}  // namespace

ClusterUsage::ClusterUsage(kubernetes::ApiClient& client, UsageBooks& books, Settings settings,
                           Effects effects)
    : client_(client),
      settings_(std::move(settings)),
      effects_(std::move(effects)),
      tokens_(client, settings_.account),
      tools_{.api = client_,
             .tokens = tokens_,
             .books = books,
             .evidence = evidence_,
             .connect = effects_.connect,
             .now = effects_.now,
             .heard_ns = [this] { return heard_ns(); }},
      schedule_(settings_.schedule, settings_.seed),
      node_watch_(client,
                  {.path = "/api/v1/nodes",
                   .label_selector = "",
                   .field_selector = "",
                   .keys = {kubernetes::reader_annotation}},
                  {.replaced = [this](const kubernetes::ObjectsByUid& all) { nodes_replaced(all); },
                   .changed = [this](const ObjectMeta& node) { node_changed(node); },
                   .removed =
                       [this](const ObjectMeta& node) {
                         const auto known = nodes_.find(node.name);
                         if (known != nodes_.end() && known->second.node.uid == node.uid)
                           node_removed(node.name);
                       }},
                  settings_.seed + 1),
      pod_watch_(
          client,
          {.path = "/api/v1/pods",
           .label_selector = "carve.dev/sliced=true",
           .field_selector = "",
           .keys = {kubernetes::account_label, kubernetes::slices_annotation}},
          {.replaced =
               [this](const kubernetes::ObjectsByUid& all) {
                 pod_lists_ = pod_watch_.lists();
                 evidence_.replaced(all, effects_.now().utc_ns);
                 step();
               },
           .changed = [this](const ObjectMeta& pod) { evidence_.changed(pod); },
           .removed = [this](const ObjectMeta& pod) { evidence_.removed(pod, effects_.now().utc_ns); }},
          settings_.seed + 2) {}

// The watch has a monotonic time.
int64_t ClusterUsage::heard_ns() const {
  // Until a list is complete again, pods may be missing.
  if (!pod_watch_.is_complete() || !pod_watch_.problem().empty() || pod_watch_.lists() != pod_lists_)
    return 0;
  return effects_.now().utc_ns - (client_.now() - pod_watch_.heard_at());
}

void ClusterUsage::nodes_replaced(const kubernetes::ObjectsByUid& all) {
  std::set<std::string> present;
  for (const auto& [uid, node] : all) present.insert(node.name);
  std::vector<std::string> gone;
  for (const auto& [name, known] : nodes_)
    if (!present.contains(name)) gone.push_back(name);
  for (const std::string& name : gone) node_removed(name);
  for (const auto& [uid, node] : all) node_changed(node);
}

void ClusterUsage::node_changed(const ObjectMeta& meta) {
  if (settings_.local_nodes.contains(meta.name)) return;
  auto node = read_cluster_node(meta);
  if (!node) {
    node_removed(meta.name);
    // A node without the annotation has no agent of Carve's.
    if (node.error().kind != FailureKind::not_found && unusable_[meta.name] != node.error().message) {
      unusable_[meta.name] = node.error().message;
      effects_.note(meta.name, {EventReason::usage_read_failed, node.error().message});
    }
    return;
  }
  unusable_.erase(meta.name);
  const auto [known, is_new] = nodes_.try_emplace(meta.name, Known{.node = *node});
  if (is_new) {
    schedule_.add(meta.name, client_.now());
  } else if (known->second.node != *node) {
    known->second.node = std::move(*node);
    schedule_.hurry(meta.name, client_.now());
  }
  step();
}

void ClusterUsage::node_removed(const std::string& name) {
  if (nodes_.erase(name) == 0) return;
  schedule_.remove(name);
  if (!reads_.contains(name)) tokens_.remove(name);
}

// Records are checked against the pods, so nothing is read before the pods are known.
void ClusterUsage::step() {
  if (!pod_watch_.is_complete()) return;
  for (const std::string& name : schedule_.begin(client_.now())) begin(name);
  const kubernetes::Nanoseconds now = client_.now();
  timer_ = client_.after(schedule_.wake_at(now) - now, [this] { step(); });
}

void ClusterUsage::begin(const std::string& name) {
  const auto read = std::make_shared<NodeRead>(
      tools_, nodes_.at(name).node, [this, name](const ReadResult& result) { ended(name, result); });
  reads_[name] = read;
  read->begin();
}

void ClusterUsage::ended(const std::string& name, const ReadResult& result) {
  over_.push_back(std::move(reads_.extract(name).mapped()));
  if (!cleaning_)
    cleaning_ = client_.after(0, [this] {
      const auto done = std::move(cleaning_);
      over_.clear();
    });
  ++counts_.reads;
  counts_.records += result.records;
  counts_.refused += result.refused;
  counts_.bytes += result.bytes;
  if (!result.problem.empty()) ++counts_.failed_reads;
  schedule_.ended(name,
                  !result.problem.empty() ? ReadSchedule::End::failed
                  : result.has_more       ? ReadSchedule::End::partial
                                          : ReadSchedule::End::complete,
                  client_.now());
  if (const auto known = nodes_.find(name); known != nodes_.end())
    report(name, known->second, result);
  else
    tokens_.remove(name);
  step();
}

void ClusterUsage::report(const std::string& name, Known& known, const ReadResult& result) {
  const auto note = [&](EventReason reason, const std::string& message) {
    os::log::info("node {}: {}", name, message);
    effects_.note(name, {reason, message});
  };
  if (result.loss == LedgerCopy::Loss::newest)
    note(EventReason::ledger_shortened,
         "its agent's ledger has lost its newest records; those that were open have been ended");
  if (result.loss == LedgerCopy::Loss::everything)
    note(EventReason::ledger_replaced,
         fmt::format("its agent has a new ledger, {}@{}; open records of the old one have been ended", name,
                     result.ledger));
  if (!result.refusals.empty() && std::exchange(known.last_refusal, result.refusals[0]) != result.refusals[0])
    note(EventReason::usage_refused, result.refused == 1 ? result.refusals[0]
                                                         : fmt::format("{}; {} records were refused",
                                                                       result.refusals[0], result.refused));
  const bool was_failing = std::exchange(known.is_failing, !result.problem.empty());
  const std::string cause = without_digits(result.problem);
  if (std::exchange(known.last_cause, cause) != cause && known.is_failing)
    note(EventReason::usage_read_failed, fmt::format("its usage records cannot be read: {}", result.problem));
  if (!known.is_failing && was_failing)
    note(EventReason::usage_read_resumed, "its usage records can be read again");
  // A pod that is too new is known in the next reads, but a wrong clock stays wrong.
  known.undecided_reads = result.undecided.empty() ? 0 : known.undecided_reads + 1;
  if (known.undecided_reads == undecided_reads_to_report)
    note(EventReason::usage_read_failed,
         fmt::format("its usage records are incomplete: {}", result.undecided));
}

std::string ClusterUsage::problem() const {
  if (!node_watch_.problem().empty()) return "nodes: " + node_watch_.problem();
  return pod_watch_.problem().empty() ? "" : "pods: " + pod_watch_.problem();
}

ClusterUsage::Figures ClusterUsage::figures() const {
  Figures out = counts_;
  out.nodes = nodes_.size();
  for (const auto& [name, known] : nodes_) out.failing += known.is_failing ? 1 : 0;
  out.running = reads_.size();
  return out;
}

}  // namespace carve::controller
