#include "cluster/books/pod_book.h"

#include <algorithm>

namespace carve::cluster {
namespace {

// Orders containers by what is hardest to place: whole devices, then memory and compute in all.
bool is_larger(const ContainerAsk& a, const ContainerAsk& b) {
  const auto key = [](const ContainerAsk& ask) {
    const place::RequestShape& s = ask.shape;
    return std::tuple(s.exclusive, s.memory.count * s.devices, s.part.basis_points * s.devices,
                      s.share.basis_points * s.devices);
  };
  return key(a) > key(b);
}

// What is no UUID is the UUID of no device.
std::vector<Uuid> uuids_of(const kube::SliceAmounts& asked) {
  std::vector<Uuid> out;
  if (asked.device_uuids)
    for (const std::string& text : *asked.device_uuids) out.push_back(parse_uuid(text).value_or(Uuid{}));
  return out;
}

}  // namespace

std::shared_ptr<SharedAsk> AskCache::shared(const kube::PodRequest& request) {
  kube::PodRequest bare = request;
  bare.given.clear();
  bare.application.reset();
  bare.priority.reset();
  auto& known = known_[api::write(bare)];
  if (auto found = known.lock()) return found;
  auto out = std::make_shared<SharedAsk>(SharedAsk{.request = std::move(bare), .by_kind = {}});
  known = out;
  return out;
}

void AskCache::forget_kinds() {
  for (const auto& [text, known] : known_)
    if (const auto ask = known.lock()) ask->by_kind.clear();
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
}

std::optional<std::vector<ContainerAsk>> asks_on(const kube::PodRequest& request, const NodeKind& kind,
                                                 const place::Fleet& fleet) {
  static_assert(node_kinds <= place::max_node_kinds);
  std::vector<ContainerAsk> out;
  for (const auto& [container, amounts] : request.containers) {
    auto on_node = request_on(amounts, request.dialect, kind);
    if (!on_node) return std::nullopt;
    ContainerAsk& ask = out.emplace_back();
    ask.container = container;
    ask.shape = place::shape_of(*on_node, fleet);
    ask.shape.kinds = place::NodeKinds{1} << number_of(kind);
    if (kind.policy == Policy::native_burst_share && !on_node->exclusive) {
      ask.shape.share = {};  // A weight: it takes nothing of what is promised.
      ask.shape.best_effort = false;
    }
    ask.request = std::move(*on_node);
    ask.devices = uuids_of(amounts);
    ask.strategy = amounts.strategy;
  }
  std::ranges::stable_sort(out, is_larger);
  // The CPU is the pod's: it counts once.
  if (!out.empty())
    out.front().shape.cpu_milli = static_cast<uint32_t>(std::min<uint64_t>(request.cpu, UINT32_MAX));
  return out;
}

}  // namespace carve::cluster
