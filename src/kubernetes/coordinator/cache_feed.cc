#include "kubernetes/coordinator/cache_feed.h"

#include <algorithm>

#include "kubernetes/format/node_devices.h"
#include "kubernetes/format/node_ledger.h"
#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/pod_resize.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::kubernetes::coordinator {
namespace {

const kubernetes::Selection node_selection{
    .path = "/api/v1/nodes",
    .label_selector = "carve.dev/node=extender",
    .field_selector = "",
    .keys = {kubernetes::devices_annotation, kubernetes::cordon_annotation, kubernetes::ledger_annotation}};
// A pod that has ended no longer matches the selection, and the watch reports it as deleted.
const kubernetes::Selection pod_selection{
    .path = "/api/v1/pods",
    .label_selector = "carve.dev/sliced=true",
    .field_selector = "status.phase!=Succeeded,status.phase!=Failed",
    .keys = {kubernetes::request_annotation, kubernetes::slices_annotation, kubernetes::resize_annotation}};

const kubernetes::Selection nominated_selection{.path = "/api/v1/pods",
                                                .label_selector = "carve.dev/sliced=true",
                                                .field_selector = "spec.nodeName=,status.nominatedNodeName!=",
                                                .is_whole = true};

}  // namespace

CacheFeed::CacheFeed(kubernetes::ApiClient& client, Cache& cache, Hooks hooks, uint64_t seed)
    : client_(client), cache_(cache), hooks_(std::move(hooks)), seed_(seed) {
  nodes_.emplace(
      client_, node_selection,
      kubernetes::WatchedObjects::Sink{
          .replaced =
              [this] {
                cache_.replace_nodes(nodes_->by_uid());
                for (const auto& [uid, node] : nodes_->by_uid()) hooks_.node(node);
              },
          .changed =
              [this](const kubernetes::ObjectMeta& node) {
                cache_.set_node(node);
                hooks_.node(node);
              },
          .removed = [this](const kubernetes::ObjectMeta& node) { cache_.remove_node(node.name); }},
      seed_++);
  watch_pods();
  nominated_.emplace(client_, nominated_selection,
                     kubernetes::WatchedObjects::Sink{
                         .replaced =
                             [this] {
                               for (const auto& [uid, pod] : nominated_->by_uid()) nominated(pod);
                             },
                         .changed = [this](const kubernetes::ObjectMeta& pod) { nominated(pod); },
                         .removed = [](const kubernetes::ObjectMeta&) {}},
                     seed_++);
}

// While some of the victims still run, the extender rejects the pod, and the scheduler withdraws its
// nomination. The coordinator therefore keeps a nomination for nomination_ns after it was first seen, or
// until the pod is bound or gone.
void CacheFeed::nominated(const kubernetes::ObjectMeta& pod) {
  Nomination& nomination = nominations_[pod.uid];
  if (nomination.node == pod.nominated_node) return;
  nomination.node = pod.nominated_node;
  cache_.nominate(pod, pod.nominated_node);
  nomination.end = client_.after(nomination_ns, [this, uid = pod.uid] {
    cache_.forget_nomination(uid);
    const auto ended = std::move(nominations_[uid].end);
    if (!nominated_->by_uid().contains(uid)) nominations_.erase(uid);
  });
}

void CacheFeed::watch_pods() {
  if (pods_) earlier_lists_ += pods_->lists();
  pods_.emplace(client_, pod_selection,
                kubernetes::ListWatch::Sink{.replaced =
                                                [this](kubernetes::ObjectsByUid by_uid) {
                                                  hooks_.listed(by_uid);
                                                  cache_.replace_pods(std::move(by_uid));
                                                },
                                            .changed =
                                                [this](const kubernetes::ObjectMeta& pod) {
                                                  cache_.set_pod(pod);
                                                  hooks_.seen(pod);
                                                },
                                            .removed =
                                                [this](const kubernetes::ObjectMeta& pod) {
                                                  cache_.remove_pod(pod.uid);
                                                  nominations_.erase(pod.uid);
                                                  hooks_.gone(pod.uid);
                                                }},
                seed_++);
}

void CacheFeed::list_pods_again(kubernetes::Nanoseconds not_before) {
  timer_ = client_.after(std::max<kubernetes::Nanoseconds>(not_before - client_.now(), 0), [this] {
    const auto ended = std::move(timer_);
    watch_pods();
  });
}

std::string CacheFeed::not_ready() const {
  if (!nodes_->is_complete()) return "the nodes have not been listed yet";
  if (timer_ || !pods_->is_complete()) return "the pods have not been listed yet";
  return "";
}

}  // namespace carve::kubernetes::coordinator
