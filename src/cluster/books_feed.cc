#include "cluster/books_feed.h"

#include <algorithm>

#include "wire/kube/node_devices.h"
#include "wire/kube/node_ledger.h"
#include "wire/kube/pod_request.h"
#include "wire/kube/pod_slices.h"
#include "wire/kube/pod_wish.h"

namespace carve::cluster {
namespace {

const kube::Selection node_selection{
    .path = "/api/v1/nodes",
    .label_selector = "carve.dev/node=extender",
    .field_selector = "",
    .keys = {kube::devices_annotation, kube::cordon_annotation, kube::ledger_annotation}};
// A pod that ends leaves the selection, and arrives as deleted.
const kube::Selection pod_selection{
    .path = "/api/v1/pods",
    .label_selector = "carve.dev/sliced=true",
    .field_selector = "status.phase!=Succeeded,status.phase!=Failed",
    .keys = {kube::request_annotation, kube::slices_annotation, kube::wish_annotation}};

const kube::Selection nominated_selection{.path = "/api/v1/pods",
                                          .label_selector = "carve.dev/sliced=true",
                                          .field_selector = "spec.nodeName=,status.nominatedNodeName!=",
                                          .is_whole = true};

}  // namespace

BooksFeed::BooksFeed(kube::ApiClient& client, Books& books, Hooks hooks, uint64_t seed)
    : client_(client), books_(books), hooks_(std::move(hooks)), seed_(seed) {
  nodes_.emplace(client_, node_selection,
                 kube::WatchedObjects::Sink{
                     .replaced = [this] { books_.replace_nodes(nodes_->by_uid()); },
                     .changed = [this](const kube::ObjectMeta& node) { books_.set_node(node); },
                     .removed = [this](const kube::ObjectMeta& node) { books_.remove_node(node.name); }},
                 seed_++);
  watch_pods();
  nominated_.emplace(
      client_, nominated_selection,
      kube::WatchedObjects::Sink{.replaced =
                                     [this] {
                                       for (const auto& [uid, pod] : nominated_->by_uid()) nominated(pod);
                                     },
                                 .changed = [this](const kube::ObjectMeta& pod) { nominated(pod); },
                                 .removed = [](const kube::ObjectMeta&) {}},
      seed_++);
}

// The scheduler takes a nomination back while the first of several victims are gone, because its preemption
// does not help a pod that an extender refuses. So it holds for its time here, or until the pod is bound or
// gone. The time counts from the first sight of this node.
void BooksFeed::nominated(const kube::ObjectMeta& pod) {
  Nomination& nomination = nominations_[pod.uid];
  if (nomination.node == pod.nominated_node) return;
  nomination.node = pod.nominated_node;
  books_.nominate(pod, pod.nominated_node);
  nomination.end = client_.after(nomination_ns, [this, uid = pod.uid] {
    books_.forget_nomination(uid);
    const auto ended = std::move(nominations_[uid].end);
    if (!nominated_->by_uid().contains(uid)) nominations_.erase(uid);
  });
}

void BooksFeed::watch_pods() {
  if (pods_) earlier_lists_ += pods_->lists();
  pods_.emplace(client_, pod_selection,
                kube::ListWatch::Sink{.replaced =
                                          [this](kube::ObjectsByUid by_uid) {
                                            hooks_.listed(by_uid);
                                            books_.replace_pods(std::move(by_uid));
                                          },
                                      .changed =
                                          [this](const kube::ObjectMeta& pod) {
                                            books_.set_pod(pod);
                                            hooks_.seen(pod);
                                          },
                                      .removed =
                                          [this](const kube::ObjectMeta& pod) {
                                            books_.remove_pod(pod.uid);
                                            nominations_.erase(pod.uid);
                                            hooks_.gone(pod.uid);
                                          }},
                seed_++);
}

void BooksFeed::list_pods_again(kube::Nanoseconds not_before) {
  timer_ = client_.after(std::max<kube::Nanoseconds>(not_before - client_.now(), 0), [this] {
    const auto ended = std::move(timer_);
    watch_pods();
  });
}

std::string BooksFeed::not_ready() const {
  if (!nodes_->is_complete()) return "the nodes are not listed yet";
  if (timer_ || !pods_->is_complete()) return "the pods are not listed yet";
  return "";
}

}  // namespace carve::cluster
