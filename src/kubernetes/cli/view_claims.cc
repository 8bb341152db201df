#include "kubernetes/cli/view_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kubernetes/format/quantity.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::cli {
namespace {

using api::Json;

constexpr int max_claim_levels = 64;
constexpr const char* claim_driver = "carve.dev";
constexpr std::string_view device_prefix = "gpu-";
constexpr uint32_t max_shares_percent = 100;

const Json& member_at(const Json& object, const char* pointer) {
  static const Json none;
  const Json::json_pointer where(pointer);
  return object.is_object() && object.contains(where) ? object.at(where) : none;
}
std::string string_at(const Json& object, const char* pointer) {
  const Json& value = member_at(object, pointer);
  return value.is_string() ? value.get<std::string>() : "";
}
uint64_t quantity_at(const Json& object, const char* pointer) {
  return kubernetes::parse_quantity(string_at(object, pointer)).value_or(0);
}

bool is_our_class(const std::string& name) {
  return name.starts_with("carve.dev") || name.starts_with("carve-");
}

ClaimedPart part_of(const Json& result) {
  const std::string device = string_at(result, "/device");
  ClaimedPart out{.node = string_at(result, "/pool"),
                  .memory = Bytes{quantity_at(result, "/consumedCapacity/memory")},
                  .compute_percent = static_cast<uint32_t>(quantity_at(result, "/consumedCapacity/compute"))};
  const std::string index = device.starts_with(device_prefix) ? device.substr(device_prefix.size()) : "0";
  out.device = static_cast<uint32_t>(std::strtoul(index.c_str(), nullptr, 10));
  return out;
}

void add_request(const Json& exactly, ViewClaim& claim) {
  if (!is_our_class(string_at(exactly, "/deviceClassName"))) return;
  const Json& count = member_at(exactly, "/count");
  claim.requests.push_back(
      {.memory = Bytes{quantity_at(exactly, "/capacity/requests/memory")},
       .compute_percent = static_cast<uint32_t>(quantity_at(exactly, "/capacity/requests/compute")),
       .count = count.is_number_unsigned() ? count.get<uint32_t>() : 1});
}

ViewClaim claim_of(const Json& object) {
  ViewClaim out{.name_space = string_at(object, "/metadata/namespace"),
                .name = string_at(object, "/metadata/name")};
  for (const Json& user : member_at(object, "/status/reservedFor"))
    if (string_at(user, "/resource") == "pods") out.pods.push_back(string_at(user, "/name"));
  const Json& results = member_at(object, "/status/allocation/devices/results");
  out.is_allocated = results.is_array();
  for (const Json& result : results)
    if (string_at(result, "/driver") == claim_driver) out.parts.push_back(part_of(result));
  for (const Json& request : member_at(object, "/spec/devices/requests")) {
    add_request(member_at(request, "/exactly"), out);
    for (const Json& alternative : member_at(request, "/firstAvailable")) add_request(alternative, out);
  }
  return out;
}

const ViewNode* node_named(const ClusterView& view, const std::string& name) {
  const auto found =
      std::ranges::find(view.nodes, name, [](const ViewNode& node) { return node.object.name; });
  return found == view.nodes.end() ? nullptr : &*found;
}

// Returns the position of the device in the node's state; no value if the node does not show it.
std::optional<size_t> position_of(const ViewNode& node, uint32_t index) {
  if (!node.state) return std::nullopt;
  const auto found = std::ranges::find(node.state->devices, index, &fleet::GpuDevice::index);
  if (found == node.state->devices.end()) return std::nullopt;
  return static_cast<size_t>(found - node.state->devices.begin());
}

// Returns why the device has no room for one part of the request. Empty if it has.
std::string obstacle(const ViewNode& node, size_t device, const ClaimRequest& request) {
  const fleet::GpuDevice& offered = node.state->devices[device];
  const fleet::DeviceUse& used = node.in_use[device];
  if (!offered.trouble.empty()) return offered.trouble;
  if (used.is_exclusive) return "exclusive";
  if (used.slices >= max_slice_devices) return fmt::format("{} slices", used.slices);
  const uint64_t needed = request.memory.count == 0 ? offered.usable.count : request.memory.count;
  const uint64_t free = offered.usable.count - std::min(used.memory.count, offered.usable.count);
  if (needed > free) return fmt::format("{} needed, {} free", text(Bytes{needed}), text(Bytes{free}));
  const uint32_t shares = used.promised.basis_points / 100;
  if (node.devices->policy.effective != Policy::native_burst_share &&
      request.compute_percent + shares > max_shares_percent)
    return fmt::format("{}% compute needed, {}% free", request.compute_percent,
                       max_shares_percent - std::min(shares, max_shares_percent));
  return "";
}

// Explains why the claim waits.
std::string waiting(const ClusterView& view, const ViewClaim& claim, std::vector<std::string>& serving) {
  std::string out;
  for (const ViewNode& node : view.nodes) {
    if (!node.is_dra || !node.state) continue;
    std::string reasons;
    bool fits = true;
    for (const ClaimRequest& request : claim.requests) {
      uint32_t free = 0;
      for (size_t i = 0; i < node.state->devices.size(); ++i) {
        const std::string why = obstacle(node, i, request);
        free += why.empty();
        if (!why.empty()) reasons += fmt::format("{}device {}: {}", reasons.empty() ? "" : "; ", i, why);
      }
      fits &= free >= request.count;
    }
    if (fits) serving.push_back(node.object.name);
    out += fmt::format("; node {}: {}", node.object.name, fits ? "has room" : reasons);
  }
  return fmt::format("claim {} waits: {}", claim.name, out.empty() ? "no node uses DRA" : out.substr(2));
}

std::string allocated(const ViewClaim& claim, std::vector<std::string>& nodes) {
  std::string out;
  for (const ClaimedPart& part : claim.parts) {
    if (std::ranges::find(nodes, part.node) == nodes.end()) nodes.push_back(part.node);
    out += fmt::format("{}{} on device {} of node {}", out.empty() ? "" : " and ",
                       part.memory.count == 0 ? "all memory" : std::string(text(part.memory).c_str()),
                       part.device, part.node);
    if (part.compute_percent != 0) out += fmt::format(", {}% compute", part.compute_percent);
  }
  return fmt::format("claim {} has {}", claim.name, out);
}

// Returns the names of the pod's claims.
std::set<std::string> claims_of_pod(const Json& pod) {
  std::set<std::string> out;
  for (const Json& claim : member_at(pod, "/spec/resourceClaims"))
    if (const std::string name = string_at(claim, "/resourceClaimName"); !name.empty()) out.insert(name);
  for (const Json& status : member_at(pod, "/status/resourceClaimStatuses"))
    out.insert(string_at(status, "/resourceClaimName"));
  out.insert(string_at(pod, "/status/extendedResourceClaimStatus/resourceClaimName"));
  out.erase("");
  return out;
}

}  // namespace

Result<std::vector<ViewClaim>, std::string> read_claims(std::string_view json) {
  const auto list = api::parse(json, api::Decimals::as_texts, max_claim_levels);
  if (!list) return tl::unexpected("the claims: " + list.error());
  std::vector<ViewClaim> out;
  for (const Json& item : member_at(*list, "/items")) {
    ViewClaim claim = claim_of(item);
    if (!claim.parts.empty() || (!claim.is_allocated && !claim.requests.empty()))
      out.push_back(std::move(claim));
  }
  return out;
}

void add_claims(ClusterView& view, const std::vector<ViewClaim>& claims) {
  for (ViewNode& node : view.nodes) {
    if (!node.is_dra || !node.state) continue;
    for (const ViewClaim& claim : claims) {
      std::set<size_t> devices;  // A claim is one slice, however many of its requests have a device.
      for (const ClaimedPart& part : claim.parts) {
        const auto device = part.node == node.object.name ? position_of(node, part.device) : std::nullopt;
        if (!device) continue;
        fleet::DeviceUse& use = node.in_use[*device];
        const bool is_whole = part.memory.count == 0;
        use.memory.count += is_whole ? node.state->devices[*device].usable.count : part.memory.count;
        use.promised.basis_points += part.compute_percent * 100;
        use.is_exclusive |= is_whole;
        if (devices.insert(*device).second) ++use.slices;
      }
    }
  }
}

void add_claims(SliceList& list, const ClusterView& view, const std::vector<ViewClaim>& claims,
                const std::string& name_space) {
  for (const ViewClaim& claim : claims) {
    if (!name_space.empty() && claim.name_space != name_space) continue;
    SliceRow row{.namespace_ = claim.name_space,
                 .pod = fmt::format("{}", fmt::join(claim.pods, ",")),
                 .container = "",
                 .asked = "claim " + claim.name};
    for (const ClaimedPart& part : claim.parts) {
      const ViewNode* const node = node_named(view, part.node);
      const auto device = node != nullptr ? position_of(*node, part.device) : std::nullopt;
      row.node = part.node;
      row.devices.push_back(std::to_string(part.device));
      row.memory.count +=
          part.memory.count == 0 && device ? node->state->devices[*device].usable.count : part.memory.count;
      row.compute_percent += part.compute_percent;
      if (node == nullptr || !node->devices) continue;
      row.policy = text(node->devices->policy.effective);
      row.enforcement = node->devices->enforcement;
    }
    if (!row.devices.empty())
      row.isolation = text(row.compute_percent != 0 ? Isolation::memory_and_compute : Isolation::memory);
    list.slices.push_back(std::move(row));
  }
}

Result<Explanation, std::string> explain_claims(const ClusterView& view, const std::vector<ViewClaim>& claims,
                                                std::string_view pod_json) {
  const auto pod = api::parse(pod_json, api::Decimals::as_texts, max_claim_levels);
  if (!pod) return tl::unexpected("the pod: " + pod.error());
  const std::string name_space = string_at(*pod, "/metadata/namespace"),
                    name = string_at(*pod, "/metadata/name");
  const std::set<std::string> names = claims_of_pod(*pod);
  Explanation out{.pod = name_space + "/" + name, .message = "", .nodes = {}};
  for (const ViewClaim& claim : claims) {
    if (claim.name_space != name_space || !names.contains(claim.name)) continue;
    const std::string why =
        claim.is_allocated ? allocated(claim, out.nodes) : waiting(view, claim, out.nodes);
    out.message += (out.message.empty() ? "" : ". ") + why;
  }
  if (out.message.empty())
    return tl::unexpected(fmt::format(
        "pod {} requests no slice: it has neither Carve's limits nor a claim of carve.dev", out.pod));
  return out;
}

}  // namespace carve::kubernetes::cli
