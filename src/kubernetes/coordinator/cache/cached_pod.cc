#include "kubernetes/coordinator/cache/cached_pod.h"

#include <algorithm>

namespace carve::kubernetes::coordinator {
namespace {

// Orders containers by the difficulty of their placement: first by whole devices, then by total memory and
// compute.
bool is_larger(const ContainerAsk& a, const ContainerAsk& b) {
  const auto key = [](const ContainerAsk& ask) {
    const place::RequestShape& s = ask.shape;
    std::tuple<bool, uint64_t, uint64_t, uint64_t> out{s.exclusive, 0, 0, 0};
    for (unsigned i = 0; i < s.devices; ++i) {
      const place::PartShape part = place::part_of(s, i);
      std::get<1>(out) += part.memory.count;
      std::get<2>(out) += part.part.basis_points;
      std::get<3>(out) += part.share.basis_points;
    }
    return out;
  };
  return key(a) > key(b);
}

// Replaces a string that is not a UUID by a UUID that no device has.
std::vector<Uuid> uuids_of(const Amounts& asked) {
  std::vector<Uuid> out;
  for (const std::string& text : asked.device_uuids) out.push_back(parse_uuid(text).value_or(Uuid{}));
  return out;
}

}  // namespace

const Result<std::vector<ContainerAsk>, fleet::Refusal>& SharedAsk::on(const fleet::NodeKind& kind,
                                                                       const place::Fleet& fleet) {
  auto found = by_kind.find(number_of(kind));
  if (found == by_kind.end()) found = by_kind.emplace(number_of(kind), asks_on(request, kind, fleet)).first;
  return found->second;
}

std::shared_ptr<SharedAsk> AskCache::shared(const kubernetes::PodRequest& request) {
  kubernetes::PodRequest bare = request;
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

Result<std::vector<ContainerAsk>, fleet::Refusal> asks_on(const kubernetes::PodRequest& request,
                                                          const fleet::NodeKind& kind,
                                                          const place::Fleet& fleet) {
  std::vector<ContainerAsk> out;
  for (const auto& [container, asked] : request.containers) {
    auto on_node = request_on(asked, request.dialect, kind);
    if (!on_node) return tl::unexpected(std::move(on_node.error()));
    ContainerAsk& ask = out.emplace_back();
    ask.container = container;
    ask.shape = fleet::shape_on(*on_node, kind, fleet);
    ask.request = std::move(*on_node);
    ask.devices = uuids_of(asked.amounts);
    ask.strategy = asked.amounts.strategy;
  }
  std::ranges::stable_sort(out, is_larger);
  // The CPU request is that of the whole pod, so it counts only once.
  if (!out.empty())
    out.front().shape.cpu_milli = static_cast<uint32_t>(std::min<uint64_t>(request.cpu, UINT32_MAX));
  return out;
}

}  // namespace carve::kubernetes::coordinator
