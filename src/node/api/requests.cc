#include "node/api/requests.h"

#include <algorithm>

#include "os/user.h"

namespace carve::node {

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
    if (number && found != nullptr) continue;  // A lost device may have the same index.
    if (found != nullptr)
      return failure(FailureKind::invalid_argument, "'{}' is the prefix of several UUIDs; use a longer one",
                     word.substr(0, 80));
    found = &d;
  }
  if (found == nullptr)
    return failure(FailureKind::invalid_argument, "there is no device '{}'; carve devices lists the devices",
                   word.substr(0, 80));
  if (!found->is_reported)
    return failure(FailureKind::failed_precondition, "device {}: {}", found->device.index,
                   found->health.reason);
  return found->device.uuid;
}

// Parses the parts of a request that was placed elsewhere, whose devices must exist.
Outcome<void> read_placed(const Agent& agent, const api::SliceRequest& d, Request& out) {
  if (d.placed.empty()) return {};
  const std::vector<DeviceView> devices = agent.devices();
  for (const api::PlacedPart& part : d.placed) {
    const auto uuid = parse_uuid(part.device);
    if (!uuid || std::ranges::none_of(
                     devices, [&](const DeviceView& v) { return v.is_reported && v.device.uuid == *uuid; }))
      return failure(FailureKind::invalid_argument,
                     "placed: there is no device '{}'; carve devices lists the UUIDs",
                     part.device.substr(0, 80));
    out.placed.push_back({*uuid, Bytes{part.memory_bytes}, Share{part.share_bp}});
  }
  return {};
}

// Returns the unit. Fails while a change of units is pending, because another slice would delay it further.
Outcome<MemoryUnit> settled_unit(const Setting<MemoryUnit>& unit) {
  if (unit.desired == unit.effective) return unit.effective;
  return failure(FailureKind::failed_precondition,
                 "the memory unit changes from {} to {} when {} {} ended, and until then no slice can be "
                 "requested in units; request bytes, as in --memory 2GiB",
                 text(unit.effective), text(unit.desired), fmt::join(unit.blocked_by, ", "),
                 unit.blocked_by.size() == 1 ? "has" : "have");
}

// Returns the devices in a comma-separated list.
Outcome<std::vector<Uuid>> listed_devices(const Agent& agent, const std::string& list) {
  std::vector<Uuid> out;
  for (size_t at = 0; !list.empty() && at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const auto uuid = device_named(agent, list.substr(at, end - at));
    if (!uuid) return tl::unexpected(uuid.error());
    if (std::ranges::count(out, *uuid) != 0)
      return failure(FailureKind::invalid_argument, "device '{}' is listed twice",
                     list.substr(at, end - at).substr(0, 80));
    out.push_back(*uuid);
    at = end + 1;
  }
  return out;
}

// Returns the devices of these models.
Outcome<std::vector<Uuid>> devices_of_models(const Agent& agent, const std::vector<std::string>& models) {
  std::vector<Uuid> out;
  for (const DeviceView& view : agent.devices())
    if (view.is_reported && std::ranges::count(models, view.device.name) != 0)
      out.push_back(view.device.uuid);
  if (out.empty())
    return failure(FailureKind::failed_precondition,
                   "models: this node has no {}; carve devices lists the devices",
                   fmt::join(models, " and no "));
  return out;
}

// Parses the allowed devices: those that `device` and amounts.device_uuids name, if their model is in
// amounts.models.
Outcome<void> read_devices(const Agent& agent, const api::SliceRequest& d, Request& r) {
  const std::string uuids = fmt::format("{}", fmt::join(d.amounts.device_uuids, ","));
  if (!d.device.empty() && !uuids.empty())
    return failure(FailureKind::invalid_argument,
                   "device and device_uuids both select devices; give only one of them");
  auto named = listed_devices(agent, d.device.empty() ? uuids : d.device);
  if (!named) return tl::unexpected(named.error());
  if (!d.amounts.models.empty()) {
    auto of_models = devices_of_models(agent, d.amounts.models);
    if (!of_models) return tl::unexpected(of_models.error());
    if (!named->empty())
      std::erase_if(*of_models, [&](const Uuid& uuid) { return std::ranges::count(*named, uuid) == 0; });
    *named = std::move(*of_models);
    if (named->empty())
      return failure(FailureKind::failed_precondition,
                     "none of the devices in the request has one of the models in the request");
  }
  if (named->empty()) return {};
  if (named->size() < r.devices)
    return failure(FailureKind::invalid_argument,
                   "{} device{} requested, but the request allows only {}; allow {} or more, or all",
                   r.devices, r.devices == 1 ? " is" : "s are", named->size(), r.devices);
  if (named->size() == 1)
    r.device = named->front();
  else
    r.among = std::move(*named);
  return {};
}

// Returns the unit of amounts in units. Other amounts do not depend on it.
Outcome<MemoryUnit> unit_for(const Agent& agent, const Amounts& amounts) {
  return amounts.memory_units ? settled_unit(agent.node().memory_unit) : MemoryUnit::gib;
}

Outcome<void> read_spill(const api::SliceRequest& d) {
  if (!d.oversubscribe.empty() && d.oversubscribe != "managed")
    return failure(FailureKind::invalid_argument, "oversubscribe: '{}' is not a mode; use managed",
                   d.oversubscribe.substr(0, 80));
  if (d.oversubscribe.empty() != (d.amounts.spill_bytes == 0))
    return failure(FailureKind::invalid_argument,
                   "oversubscribe and spill_bytes must be used together; give oversubscribe \"managed\" with "
                   "spill_bytes, or neither");
  return {};
}

// Parses the owner and the holder, which only operators may set.
Outcome<void> read_owner(const api::SliceRequest& d, const http::Caller& caller, Request& r) {
  r.owner = d.owner_uid.value_or(*caller.uid());
  const std::string own_account = os::user_name(r.owner);
  r.account = d.account.empty() ? own_account : d.account;
  if (!caller.may_operate() && (r.owner != caller.uid() || r.account != own_account))
    return failure(
        FailureKind::permission_denied,
        "{} may create slices only for uid {} and the account '{}'; leave out owner_uid and account",
        caller.text(), *caller.uid(), os::user_name(*caller.uid()));
  if (d.holder && !caller.may_operate())
    return failure(FailureKind::permission_denied,
                   "{} may not create slices for pods and claims; leave out holder", caller.text());
  if (d.holder && !*d.holder)
    return failure(FailureKind::invalid_argument, "holder: exactly one of pod and claim is required");
  r.holder = d.holder.value_or(Holder{});
  return {};
}

}  // namespace

tl::unexpected<Failure> no_slot(const std::string& word) {
  return failure(FailureKind::invalid_argument, "there is no slot '{}'; slots are {} to {}",
                 word.substr(0, 80), text(ContainerSlot{}), text(ContainerSlot{max_container_slots - 1}));
}

Outcome<Request> to_request(const Agent& agent, const api::SliceRequest& d, const http::Caller& caller) {
  const auto unit = unit_for(agent, d.amounts);
  if (!unit) return tl::unexpected(unit.error());
  Outcome<Request> out = request_of(d.amounts, *unit);
  if (!out) return out;
  Request& r = *out;
  r.name = d.name;
  r.request_id = d.request_id;
  r.labels = d.labels;
  r.lifetime = d.lifetime;
  r.application = d.application;
  if (const auto good = read_owner(d, caller, r); !good) return tl::unexpected(good.error());
  r.slot = parse_container_slot(d.slot);
  if (!r.slot && !d.slot.empty()) return no_slot(d.slot);
  if (const auto good = read_spill(d); !good) return tl::unexpected(good.error());
  if (const auto good = read_placed(agent, d, r); !good) return tl::unexpected(good.error());
  if (const auto good = read_devices(agent, d, r); !good) return tl::unexpected(good.error());
  if (r.strategy && !parse_node_strategy(text(*r.strategy)))
    return failure(FailureKind::invalid_argument, "'{}' is not a strategy that agents support; use {}",
                   text(*r.strategy), node_strategy_names());
  return validated(std::move(r));
}

}  // namespace carve::node
