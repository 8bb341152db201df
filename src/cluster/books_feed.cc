#include "cluster/books_feed.h"

#include <algorithm>

namespace carve::cluster {
namespace {

const kube::Selection node_selection{
    .path = "/api/v1/nodes", .label_selector = "carve.dev/node=extender", .field_selector = ""};
// A pod that ends leaves the selection, and arrives as deleted.
const kube::Selection pod_selection{.path = "/api/v1/pods",
                                    .label_selector = "carve.dev/sliced=true",
                                    .field_selector = "status.phase!=Succeeded,status.phase!=Failed"};

}  // namespace

BooksFeed::BooksFeed(kube::ApiClient& client, Books& books, std::function<void(const std::string&)> gone,
                     uint64_t seed)
    : client_(client), books_(books), gone_(std::move(gone)), seed_(seed) {
  nodes_.emplace(client_, node_selection,
                 kube::ListWatch::Sink{
                     .replaced = [this](const auto& by_uid) { books_.replace_nodes(by_uid); },
                     .changed = [this](const kube::ObjectMeta& node) { books_.set_node(node); },
                     .removed = [this](const kube::ObjectMeta& node) { books_.remove_node(node.name); }},
                 seed_++);
  watch_pods();
}

void BooksFeed::watch_pods() {
  if (pods_) earlier_lists_ += pods_->lists();
  pods_.emplace(client_, pod_selection,
                kube::ListWatch::Sink{.replaced = [this](const auto& by_uid) { books_.replace_pods(by_uid); },
                                      .changed = [this](const kube::ObjectMeta& pod) { books_.set_pod(pod); },
                                      .removed =
                                          [this](const kube::ObjectMeta& pod) {
                                            books_.remove_pod(pod.uid);
                                            gone_(pod.uid);
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
