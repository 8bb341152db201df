#include "node/api/requests.h"

#include <algorithm>

#include "os/user.h"

namespace carve::node {

using K = FailureKind;

namespace {

// Resolves "0", "GPU-...", or a unique prefix of a UUID.
Outcome<Uuid> device_named(const Agent& agent, const std::string& word) {
  const std::vector<DeviceView> devices = agent.devices();
  const DeviceView* found = nullptr;
  const bool number = !word.empty() && word.size() <= 3 &&
                      std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
  for (const DeviceView& d : devices) {
    const bool same = number ? d.device.index == static_cast<unsigned>(std::stoi(word))
                             : word.size() > 4 && text(d.device.uuid).starts_with(word);
    if (!same) continue;
    if (number && found != nullptr) continue;  // A lost device may have had the index.
    if (found != nullptr)
      return failure(K::invalid_argument, "'{}' is the prefix of several UUIDs; use a longer one",
                     word.substr(0, 80));
    found = &d;
  }
  if (found == nullptr)
    return failure(K::invalid_argument, "there is no device '{}'; carve devices lists the devices",
                   word.substr(0, 80));
  if (!found->is_reported)
    return failure(K::failed_precondition, "device {}: {}", found->device.index, found->health.reason);
  return found->device.uuid;
}

// Reads the parts that were placed elsewhere. Their devices exist.
Outcome<void> read_placed(const Agent& agent, const api::SliceRequest& d, Request& out) {
  if (d.placed.empty()) return {};
  const std::vector<DeviceView> devices = agent.devices();
  for (const api::PlacedPart& part : d.placed) {
    const auto uuid = parse_uuid(part.device);
    if (!uuid || std::ranges::none_of(
                     devices, [&](const DeviceView& v) { return v.is_reported && v.device.uuid == *uuid; }))
      return failure(K::invalid_argument, "placed: there is no device '{}'; carve devices lists the UUIDs",
                     part.device.substr(0, 80));
    out.placed.push_back({*uuid, Bytes{part.memory_bytes}, Share{part.share_bp}});
  }
  return {};
}

}  // namespace

tl::unexpected<Failure> no_slot(const std::string& word) {
  return failure(K::invalid_argument, "there is no slot '{}'; slots are {} to {}", word.substr(0, 80),
                 text(ContainerSlot{}), text(ContainerSlot{max_container_slots - 1}));
}

Outcome<Request> to_request(const Agent& agent, const api::SliceRequest& d, const http::Caller& caller) {
  Request r;
  r.name = d.name;
  r.request_id = d.request_id;
  r.owner = d.owner_uid.value_or(*caller.uid());
  const std::string own_account = os::user_name(r.owner);
  r.account = d.account.empty() ? own_account : d.account;
  if (!caller.may_operate() && (r.owner != caller.uid() || r.account != own_account))
    return failure(
        K::permission_denied,
        "{} may create slices for uid {} and the account '{}' only; leave out owner_uid and account",
        caller.text(), *caller.uid(), os::user_name(*caller.uid()));
  r.labels = d.labels;
  if (d.holder && !caller.may_operate())
    return failure(K::permission_denied, "{} may not create slices for pods and claims; leave out holder",
                   caller.text());
  if (d.holder && !*d.holder) return failure(K::invalid_argument, "holder: give one of pod and claim");
  r.holder = d.holder.value_or(Holder{});
  r.slot = parse_container_slot(d.slot);
  if (!r.slot && !d.slot.empty()) return no_slot(d.slot);
  if (d.memory_bytes.has_value() + d.memory_bp.has_value() + d.total_memory_bytes.has_value() +
          d.memory_units.has_value() >
      1)
    return failure(
        K::invalid_argument,
        "memory is given more than once; give it per device, as a part of a device, in total, or in "
        "units");
  if (d.memory_units) {
    r.memory_units = {*d.memory_units, agent.node().memory_unit.effective};
    r.memory = PerDevice{{*d.memory_units * size_of(r.memory_units.unit).count}};
  }
  if (d.memory_bytes) r.memory = PerDevice{{*d.memory_bytes}};
  if (d.memory_bp) r.memory = OfUsable{{*d.memory_bp}};
  if (d.total_memory_bytes) r.memory = InTotal{{*d.total_memory_bytes}};
  if (d.share_bp && *d.share_bp == 0)
    return failure(K::invalid_argument,
                   "a compute share must be above 0% and at most 100%; leave it out for none");
  r.share = {d.share_bp.value_or(0)};
  if (!d.oversubscribe.empty() && d.oversubscribe != "managed")
    return failure(K::invalid_argument, "'{}' is not a way to oversubscribe; use managed",
                   d.oversubscribe.substr(0, 80));
  if (d.oversubscribe.empty() != (d.spill_bytes == 0))
    return failure(K::invalid_argument,
                   "oversubscribe and spill_bytes need each other; give oversubscribe \"managed\" with "
                   "spill_bytes, or neither");
  r.spill = {d.spill_bytes};
  if (const auto good = read_placed(agent, d, r); !good) return tl::unexpected(good.error());
  r.devices = d.devices;
  r.exclusive = d.exclusive;
  r.lifetime = d.lifetime;
  r.application = d.application;
  r.latency = d.latency_class;
  if (!d.device.empty()) {
    const auto uuid = device_named(agent, d.device);
    if (!uuid) return tl::unexpected(uuid.error());
    r.device = *uuid;
  }
  if (d.strategy && !parse_node_strategy(text(*d.strategy)))
    return failure(K::invalid_argument, "'{}' is not a strategy of an agent; use {}", text(*d.strategy),
                   node_strategy_names());
  r.strategy = d.strategy;
  r.policy = d.policy;
  r.isolation = d.isolation;
  return validated(std::move(r));
}

}  // namespace carve::node
