#include "node/placement/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/invariant.h"

namespace carve::node {

std::vector<place::DeviceSnapshot> PlacementInput::snapshot() const {
  std::vector<place::DeviceSnapshot> out;
  for (const NodeDevice& d : devices) {
    place::DeviceSnapshot one;
    one.device = d.device;
    one.context = settings.contexts_in_slice ? d.context : Bytes{};
    one.trouble = d.sample.health.reason.empty() ? mode_message(d.sample.mode) : d.sample.health.reason;
    if (const auto balance = ledger.balances().find(d.device.uuid); balance != ledger.balances().end()) {
      one.free = balance->second.free;
      one.free_share = balance->second.free_share;
      for (const auto& [id, part] : balance->second.held) {
        const Slice& granted = ledger.living().at(id).slice;
        ++one.slices;
        one.isolated += granted.isolation != Isolation::none;
        one.exclusive |= granted.exclusive;
        one.shared_out |= granted.shares_compute() && granted.policy != Policy::native_burst_share &&
                          !settings.admit_best_effort;
      }
    }
    if (settings.overcommit_compute) one.free_share = whole_device;
    if (!settings.policy_per_slice) one.policy = policies.of(d.device.uuid).effective;
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<place::PlacedSlice> PlacementInput::placed_slices(const Viewer& viewer) const {
  std::vector<place::PlacedSlice> out;
  for (const auto& [id, record] : ledger.living()) {
    const Slice& granted = record.slice;
    place::PlacedSlice placed{
        .name = viewer.sees(granted.owner) ? granted.name : "another user's slice",
        .parts = {},
        .exclusive = granted.exclusive,
        .isolated = granted.isolation != Isolation::none,
        .best_effort = !granted.shares_compute() && !granted.exclusive,
        .policy = settings.policy_per_slice ? std::nullopt : std::optional(granted.policy),
        // Applications of different users are different even if they have the same name.
        .application = granted.owner == viewer.uid ? granted.application : "",
    };
    for (const SlicePart& part : granted.parts) {
      const auto d =
          std::ranges::find(devices, part.device, [](const NodeDevice& n) { return n.device.uuid; });
      if (d != devices.end())
        placed.parts.push_back({static_cast<size_t>(d - devices.begin()), part.memory, part.share});
    }
    if (placed.parts.size() == granted.parts.size()) out.push_back(std::move(placed));
  }
  return out;
}

namespace {

// Places the request regardless of limits.
place::Answer place_request(const PlacementInput& in, const Request& request, const Viewer& viewer) {
  std::vector<place::DeviceSnapshot> all = in.snapshot();
  for (place::DeviceSnapshot& one : all)
    if (!request.among.empty() && std::ranges::count(request.among, one.device.uuid) == 0)
      one.trouble = "the request names other devices";
  if (request.policy == Policy::native_burst_share)  // A weight does not reduce the guaranteed share.
    for (place::DeviceSnapshot& one : all) one.free_share = whole_device;
  if (!request.placed.empty()) {
    Request bound = request;  // All parts follow the policy of the first part's device.
    if (const auto first =
            std::ranges::find(all, request.placed.front().device,
                              [](const place::DeviceSnapshot& one) { return one.device.uuid; });
        !bound.policy && first != all.end())
      bound.policy = first->policy;
    return place::check_placed(all, bound);
  }
  const std::vector<place::PlacedSlice> who = in.placed_slices(viewer);
  const Strategy strategy = request.strategy.value_or(in.settings.strategy);
  const auto answer_to = [&](const Request& r) { return place::place(all, r, strategy, who, in.links()); };
  place::Answer answer = answer_to(request);
  if (!answer.placement || request.policy || in.settings.policy_per_slice) return answer;
  // While some devices have changed their policy and others have not, all parts go to devices with the same
  // policy.
  const auto policy_of = [&](size_t i) { return *all[i].policy; };
  const std::vector<size_t> chosen = answer.placement->devices();
  if (std::ranges::all_of(chosen, [&](size_t i) { return policy_of(i) == policy_of(chosen[0]); }))
    return answer;
  std::vector<Policy> policies{in.policies.desired()};
  for (const place::DeviceSnapshot& one : all) policies.push_back(*one.policy);
  for (const Policy policy : policies) {
    Request bound = request;
    bound.policy = policy;
    answer = answer_to(bound);
    if (answer.placement) break;
  }
  return answer;
}

// Returns the request with only those devices on which its owner already has slices; no value if the request itself
// selects its devices, or if these devices are too few.
std::optional<Request> on_held_devices(const PlacementInput& in, const Request& request) {
  if (request.device || !request.among.empty() || !request.placed.empty()) return std::nullopt;
  const Held held = held_by_user(in.ledger, request.owner);
  if (held.devices.size() < request.devices) return std::nullopt;
  Request out = request;
  if (held.devices.size() == 1)
    out.device = *held.devices.begin();
  else
    out.among.assign(held.devices.begin(), held.devices.end());
  return out;
}

}  // namespace

place::Answer explain(const PlacementInput& in, const Request& request, const Viewer& viewer) {
  const auto check = [&](const place::Answer& answer) {
    return check_grant(in.limits, in.ledger, granted_slice(in, request, *answer.placement));
  };
  place::Answer answer = place_request(in, request, viewer);
  const auto good = answer.placement ? check(answer) : Outcome<void>();
  if (good) return answer;
  if (const auto restricted = on_held_devices(in, request)) {
    // The limit may only allow no further device.
    place::Answer again = place_request(in, *restricted, viewer);
    if (again.placement && check(again)) return again;
  }
  place::Answer refused;
  refused.summary = refused.reasons = good.error().message;
  refused.is_lasting = good.error().kind == FailureKind::failed_precondition;
  return refused;
}

ConsolidationView plan_consolidation(const PlacementInput& in, unsigned devices, const Viewer& viewer) {
  ConsolidationView out;
  out.slices = in.placed_slices(viewer);
  out.plan = place::plan(in.snapshot(), in.settings.strategy, out.slices, devices, in.links());
  return out;
}

Slice granted_slice(const PlacementInput& in, const Request& request, const place::Placement& placement) {
  invariant(!placement.parts.empty(), "a placement names a device");
  Slice granted;
  granted.name = request.name;
  for (uint64_t number = in.ledger.next_id(); granted.name.empty() || in.ledger.find(granted.name) != nullptr;
       ++number)
    granted.name = fmt::format("slice-{}", number);
  granted.request_id = request.request_id;
  granted.owner = request.owner;
  granted.exclusive = request.exclusive;
  granted.lifetime = request.lifetime;
  granted.isolation = request.isolated();
  granted.policy = request.policy.value_or(
      in.policies.of(in.devices[placement.parts.front().device].device.uuid).effective);
  granted.latency = request.latency;
  granted.application = request.application;
  granted.account = request.account;
  granted.labels = request.labels;
  granted.memory_units = request.memory_units;
  granted.holder = request.holder;
  for (const place::PlacementPart& part : placement.parts) {
    const Device& d = in.devices[part.device].device;
    granted.parts.push_back({d.uuid, part.memory, part.share, request.spill, d.usable(), d.native, d.name});
  }
  return granted;
}

bool is_granted(const PlacementInput& in, const Request& request, const Slice& slice) {
  if (slice.exclusive != request.exclusive || slice.parts.size() != request.devices ||
      slice.isolation != request.isolated() || slice.latency != request.latency ||
      (request.policy && *request.policy != slice.policy))
    return false;
  for (size_t i = 0; i < slice.parts.size(); ++i) {
    const SlicePart& part = slice.parts[i];
    if (part.spill != request.spill) return false;
    const auto placed = std::ranges::find(request.placed, part.device, &PlacedPart::device);
    if (placed == request.placed.end() && !request.placed.empty()) return false;
    if (request.exclusive) continue;
    if (placed != request.placed.end()) {
      if (part.memory != placed->memory || part.share != placed->share) return false;
      continue;
    }
    const auto on =
        std::ranges::find(in.devices, part.device, [](const NodeDevice& d) { return d.device.uuid; });
    if (on == in.devices.end() || part.memory != need(request, i, on->device) ||
        part.share != share_of(request, i))
      return false;
  }
  return true;
}

}  // namespace carve::node
