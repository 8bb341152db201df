#include "controller/cluster/pod_evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/utc.h"
#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::controller {

PodEvidence::Pod PodEvidence::pod_of(const kubernetes::ObjectMeta& meta) {
  Pod out{.node = "", .name_space = meta.name_space, .name = meta.name, .account = meta.name_space};
  if (const auto label = meta.labels.find(kubernetes::account_label); label != meta.labels.end())
    out.account = label->second;
  if (const auto text = meta.annotations.find(kubernetes::slices_annotation); text != meta.annotations.end())
    if (auto slices = kubernetes::read_slices(text->second)) out.node = std::move(slices->node);
  return out;
}

void PodEvidence::delete_pod(const std::string& uid, Pod& pod, int64_t now_ns) {
  pod.deleted_ns = now_ns;
  deleted_.push_back(uid);
  while (deleted_.size() > max_remembered_pods) {
    const auto oldest = pods_.find(deleted_.front());
    complete_since_ns_ = std::max(complete_since_ns_, oldest->second.deleted_ns);
    pods_.erase(oldest);
    deleted_.pop_front();
  }
}

void PodEvidence::replaced(const kubernetes::ObjectsByUid& present, int64_t now_ns) {
  std::vector<std::string> gone;
  for (const auto& [uid, pod] : pods_)
    if (pod.deleted_ns == 0 && !present.contains(uid)) gone.push_back(uid);
  for (const std::string& uid : gone) delete_pod(uid, pods_.at(uid), now_ns);
  for (const auto& [uid, meta] : present) changed(meta);
  complete_since_ns_ = now_ns;
}

void PodEvidence::changed(const kubernetes::ObjectMeta& meta) {
  Pod pod = pod_of(meta);
  const auto known = pods_.find(meta.uid);
  if (known == pods_.end()) {
    pods_.emplace(meta.uid, std::move(pod));
  } else if (known->second.deleted_ns == 0) {
    known->second = std::move(pod);
  }
}

void PodEvidence::removed(const kubernetes::ObjectMeta& meta, int64_t now_ns) {
  const auto known = pods_.try_emplace(meta.uid, pod_of(meta)).first;
  if (known->second.deleted_ns == 0) delete_pod(meta.uid, known->second, now_ns);
}

PodEvidence::Decision PodEvidence::check(const ledger::UsageRecord& record, const std::string& node,
                                         int64_t heard_ns) const {
  if (!record.slice.holder.pod) return {};
  const PodContainer& holder = *record.slice.holder.pod;
  const auto known = pods_.find(holder.uid);
  const auto refuse = [&](const std::string& reason) {
    return Decision{.verdict = Verdict::refused, .reason = reason};
  };
  if (known == pods_.end()) {
    const int64_t from = record.from.utc_ns;
    if (from >= heard_ns - max_watch_delay_ns)
      return {.verdict = Verdict::undecided,
              .reason = fmt::format("pod {}/{} is not known yet", holder.namespace_, holder.name)};
    if (complete_since_ns_ > from - max_clock_difference_ns) return {};
    return refuse(
        fmt::format("there was no pod {}/{} with uid {}", holder.namespace_, holder.name, holder.uid));
  }
  const Pod& pod = known->second;
  if (holder.namespace_ != pod.name_space || holder.name != pod.name)
    return refuse(fmt::format("pod {} is {}/{}, not {}/{}", holder.uid, pod.name_space, pod.name,
                              holder.namespace_, holder.name));
  if (pod.node != node)
    return refuse(fmt::format("pod {}/{} was on {}", pod.name_space, pod.name,
                              pod.node.empty() ? "no node" : "node " + pod.node));
  if (record.slice.account != pod.account)
    return refuse(fmt::format("account '{}' does not pay for pod {}/{}; '{}' does",
                              record.slice.account.substr(0, 253), pod.name_space, pod.name, pod.account));
  return {};
}

}  // namespace carve::controller
