// Any bytes as a resource claim yield a slice that this node's devices can have, or a message.
#include <cstdint>
#include <cstdlib>

#include "kubernetes/node/rules/resource_claim.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  using namespace carve::kubernetes::node;
  const auto claim = read_claim({reinterpret_cast<const char*>(data), size});
  if (!claim) {
    if (claim.error().empty() || claim.error().size() > 2048) std::abort();
    return 0;
  }
  if (claim->results.size() > max_claim_results && claim->problem.empty()) std::abort();
  ClaimContext context{.node = "n1"};
  for (uint32_t i = 0; i < 2; ++i) {
    api::Device& device = context.devices.emplace_back();
    device.index = i;
    device.uuid =
        i == 0 ? "GPU-00000000-0000-0000-0000-000000000000" : "GPU-00000000-0000-0000-0000-000000000001";
    device.usable_bytes = 1ull << 34;
  }
  const auto decided = decide_claim(context, *claim);
  if (!decided) {
    if (decided.error().empty() || decided.error().size() > 4096) std::abort();
    return 0;
  }
  if (!claim->problem.empty()) std::abort();
  const api::SliceRequest& request = decided->request;
  if (request.placed.empty() || request.placed.size() > 2 || decided->devices.front().cdi_device.empty())
    std::abort();
  for (const api::PlacedPart& part : request.placed)
    if (part.memory_bytes > 1ull << 34 || part.share_bp > 10'000) std::abort();
  for (const ClaimPod& pod : claim->pods)
    if (!check(pod)) std::abort();
  return 0;
}
