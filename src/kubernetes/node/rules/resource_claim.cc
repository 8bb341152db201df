#include "kubernetes/node/rules/resource_claim.h"

#include <algorithm>

#include "core/attach_point.h"
#include "core/invariant.h"
#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/quantity.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::node {
namespace {

using api::Json;

constexpr int max_claim_depth = 64;          // As max_json_depth: managedFields nest deeply.
constexpr size_t max_claim_nodes = 200'000;  // A claim of 1.5 MB, the limit of etcd, has fewer.
constexpr size_t max_shown_bytes = 80;       // Limit of a value from outside in a message.
constexpr const char* parameters_version = "carve.dev/v1";
constexpr const char* parameters_kind = "SliceParameters";

std::string brief(const std::string& text) { return text.substr(0, max_shown_bytes); }

// Returns the member, or null if the value is not an object or has no such member.
const Json* member(const Json* value, const char* key) {
  if (value == nullptr || !value->is_object()) return nullptr;
  const auto found = value->find(key);
  return found == value->end() ? nullptr : &*found;
}
const Json* member(const Json* value, std::initializer_list<const char*> keys) {
  for (const char* key : keys) value = member(value, key);
  return value;
}
std::string text_of(const Json* value) {
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}
// Iterates over the items of a list; none if the value is no list.
std::vector<const Json*> items(const Json* value) {
  std::vector<const Json*> out;
  if (value != nullptr && value->is_array())
    for (const Json& item : *value) out.push_back(&item);
  return out;
}
std::map<std::string, std::string> texts(const Json* value) {
  std::map<std::string, std::string> out;
  if (value != nullptr && value->is_object())
    for (const auto& [key, item] : value->items())
      out[key] = item.is_string() ? item.get<std::string>() : item.dump();
  return out;
}

ClaimResult result_of(const Json* value) {
  ClaimResult out{.request = text_of(member(value, "request")),
                  .driver = text_of(member(value, "driver")),
                  .pool = text_of(member(value, "pool")),
                  .device = text_of(member(value, "device")),
                  .share_id = text_of(member(value, "shareID")),
                  .consumed = texts(member(value, "consumedCapacity"))};
  const Json* const admin = member(value, "adminAccess");
  out.is_admin = admin != nullptr && admin->is_boolean() && admin->get<bool>();
  return out;
}

template <class E>
Result<std::optional<E>, std::string> word_of(const char* key, const Json& value) {
  const auto word = parse_named<E>(text_of(&value));
  if (word) return std::optional<E>(*word);
  return tl::unexpected(fmt::format("config: {}: {}", key, word.error().message));
}

Result<SliceParameters, std::string> parameters_of(const Json* value) {
  SliceParameters out;
  if (text_of(member(value, "apiVersion")) != parameters_version ||
      text_of(member(value, "kind")) != parameters_kind)
    return tl::unexpected(
        fmt::format("config: parameters of {} must have apiVersion {} and kind {}, not '{}' and "
                    "'{}'",
                    dra_driver, parameters_version, parameters_kind,
                    brief(text_of(member(value, "apiVersion"))), brief(text_of(member(value, "kind")))));
  for (const auto& [key, item] : value->items()) {
    if (key == "latencyClass") {
      const auto word = word_of<LatencyClass>("latencyClass", item);
      if (!word) return tl::unexpected(word.error());
      out.latency_class = *word;
    } else if (key == "isolation") {
      const auto word = word_of<Isolation>("isolation", item);
      if (!word) return tl::unexpected(word.error());
      out.isolation = *word;
    } else if (key != "apiVersion" && key != "kind") {
      return tl::unexpected(
          fmt::format("config: unknown field '{}'; use latencyClass and isolation", brief(key)));
    }
  }
  return out;
}

template <class V>
Result<void, std::string> merge(const char* key, const std::optional<V>& next, std::optional<V>& all) {
  if (next && all && *next != *all)
    return tl::unexpected(
        fmt::format("config: {} has two values, but all devices of a claim are one slice", key));
  if (next) all = next;
  return {};
}

// Collects the parameters of one source ("FromClass", "FromClaim").
Result<SliceParameters, std::string> parameters_from(const Json* configs, std::string_view source) {
  SliceParameters out;
  for (const Json* config : items(configs)) {
    const Json* const opaque = member(config, "opaque");
    if (text_of(member(opaque, "driver")) != dra_driver || text_of(member(config, "source")) != source)
      continue;
    const auto read = parameters_of(member(opaque, "parameters"));
    if (!read) return read;
    if (const auto merged = merge("latencyClass", read->latency_class, out.latency_class); !merged)
      return tl::unexpected(merged.error());
    if (const auto merged = merge("isolation", read->isolation, out.isolation); !merged)
      return tl::unexpected(merged.error());
  }
  return out;
}

std::vector<ClaimPod> pods_of(const Json* reserved, const std::string& name_space) {
  std::vector<ClaimPod> out;
  for (const Json* user : items(reserved)) {
    if (text_of(member(user, "resource")) != "pods" || !text_of(member(user, "apiGroup")).empty()) continue;
    ClaimPod pod{name_space, text_of(member(user, "name")), text_of(member(user, "uid"))};
    if (check(pod)) out.push_back(std::move(pod));
  }
  return out;
}

// The part of the slice on one device, or why there is none.
Result<api::PlacedPart, std::string> part_of(const ClaimResult& result, const api::Device& device) {
  api::PlacedPart out{.device = device.uuid};
  if (result.consumed.empty()) return out;  // The whole device.
  const auto amount = [&](const char* capacity) -> Result<uint64_t, std::string> {
    const auto found = result.consumed.find(capacity);
    if (found == result.consumed.end()) return uint64_t{0};
    if (const auto number = parse_quantity(found->second)) return *number;
    return tl::unexpected(fmt::format("device {}: '{}' is not an amount of {}", brief(result.device),
                                      brief(found->second), capacity));
  };
  const auto memory = amount("memory"), compute = amount("compute");
  if (!memory) return tl::unexpected(memory.error());
  if (!compute) return tl::unexpected(compute.error());
  if (*memory == 0)
    return tl::unexpected(fmt::format("device {}: the claim consumes no memory", brief(result.device)));
  if (*memory > device.usable_bytes)
    return tl::unexpected(fmt::format("device {}: the claim consumes {} of memory, but the device has {}",
                                      brief(result.device), text(Bytes{*memory}),
                                      text(Bytes{device.usable_bytes})));
  if (*compute > 100)
    return tl::unexpected(fmt::format("device {}: the claim consumes {} % of compute, but a device has 100",
                                      brief(result.device), *compute));
  out.memory_bytes = *memory;
  out.share_bp = static_cast<uint32_t>(*compute) * 100;
  return out;
}

// Adds the part to those of the slice. Two requests of a claim may have been given the same device.
Result<void, std::string> add(const api::PlacedPart& part, const api::Device& device,
                              std::vector<api::PlacedPart>& parts) {
  const auto same = std::ranges::find(parts, part.device, &api::PlacedPart::device);
  if (same == parts.end()) {
    parts.push_back(part);
    return {};
  }
  same->memory_bytes += part.memory_bytes;
  same->share_bp += part.share_bp;
  if (same->memory_bytes > device.usable_bytes || same->share_bp > 10'000)
    return tl::unexpected(
        fmt::format("device {}: the requests of the claim consume {} of memory and {} % of "
                    "compute together, more than the device has",
                    device_name(device.index), text(Bytes{same->memory_bytes}), same->share_bp / 100));
  return {};
}

Isolation isolation_of(const ClaimContext& context, const SeenClaim& claim,
                       const std::vector<api::PlacedPart>& parts) {
  if (context.mode == NodeMode::none) return Isolation::none;
  if (claim.parameters.isolation) return *claim.parameters.isolation;
  const bool has_share = std::ranges::any_of(parts, [](const api::PlacedPart& p) { return p.share_bp != 0; });
  return has_share ? Isolation::memory_and_compute : Isolation::memory;
}

void complete_request(const ClaimContext& context, const SeenClaim& claim, api::SliceRequest& request) {
  const bool is_whole = request.placed.front().memory_bytes == 0;
  request.amounts.exclusive = is_whole;
  if (!is_whole) request.amounts.isolation = isolation_of(context, claim, request.placed);
  request.amounts.latency_class = claim.parameters.latency_class;
  request.lifetime = Lifetime::until_deleted;
  request.labels = {{claim_namespace_label, claim.name.name_space}, {claim_name_label, claim.name.name}};
  const auto account = claim.labels.find(kubernetes::account_label);
  request.account = account == claim.labels.end() ? claim.name.name_space : account->second;
  request.holder = Holder{.pod = {}, .claim = claim.name.uid};
}

}  // namespace

std::string device_name(uint32_t index) { return fmt::format("gpu-{}", index); }

Result<SeenClaim, std::string> read_claim(std::string_view json) {
  const auto parsed = api::parse(json, api::Decimals::as_texts, max_claim_depth, max_claim_nodes);
  if (!parsed) return tl::unexpected("a claim: " + parsed.error());
  const Json* const root = &*parsed;
  SeenClaim out;
  out.name = {.name_space = text_of(member(root, {"metadata", "namespace"})),
              .name = text_of(member(root, {"metadata", "name"})),
              .uid = text_of(member(root, {"metadata", "uid"}))};
  if (out.name.uid.empty()) return tl::unexpected(std::string("a claim: it has no uid"));
  out.labels = texts(member(root, {"metadata", "labels"}));
  const Json* const devices = member(root, {"status", "allocation", "devices"});
  out.is_allocated = devices != nullptr;
  for (const Json* result : items(member(devices, "results"))) out.results.push_back(result_of(result));
  out.pods = pods_of(member(root, {"status", "reservedFor"}), out.name.name_space);
  const auto of_class = parameters_from(member(devices, "config"), "FromClass");
  const auto of_claim = parameters_from(member(devices, "config"), "FromClaim");
  if (out.results.size() > max_claim_results)
    out.problem =
        fmt::format("it has {} devices; at most {} are possible", out.results.size(), max_claim_results);
  else if (!of_class || !of_claim)
    out.problem = (of_class ? of_claim : of_class).error();
  if (of_class) out.parameters = *of_class;
  if (of_claim && of_claim->latency_class) out.parameters.latency_class = of_claim->latency_class;
  if (of_claim && of_claim->isolation) out.parameters.isolation = of_claim->isolation;
  return out;
}

Result<ClaimDecision, std::string> decide_claim(const ClaimContext& context, const SeenClaim& claim) {
  const auto refuse = [&](const std::string& why) {
    return tl::unexpected(fmt::format("claim {}: {}", claim.name.text(), why));
  };
  if (!claim.problem.empty()) return refuse(claim.problem);
  if (!claim.is_allocated) return refuse("it is not allocated");
  if (const auto good = check(Holder{.pod = {}, .claim = claim.name.uid}); !good)
    return refuse(good.error().message);
  ClaimDecision out;
  for (const ClaimResult& result : claim.results) {
    if (result.driver != dra_driver || result.pool != context.node) continue;
    if (result.is_admin) return refuse("adminAccess is not supported; request memory and compute");
    const auto device = std::ranges::find(context.devices, result.device,
                                          [](const api::Device& d) { return device_name(d.index); });
    if (device == context.devices.end())
      return refuse(fmt::format("this node has no device {}", brief(result.device)));
    const auto part = part_of(result, *device);
    if (!part) return refuse(part.error());
    if (const auto added = add(*part, *device, out.request.placed); !added) return refuse(added.error());
    out.devices.push_back({.request = result.request,
                           .pool = result.pool,
                           .device = result.device,
                           .share_id = result.share_id,
                           .cdi_device = ""});
  }
  if (out.devices.empty()) return refuse(fmt::format("it has no device of node {}", context.node));
  if (out.request.placed.size() > max_slice_devices)
    return refuse(fmt::format("it has {} devices of this node; a slice has at most {}",
                              out.request.placed.size(), max_slice_devices));
  const auto is_whole = [](const api::PlacedPart& part) { return part.memory_bytes == 0; };
  const auto whole = std::ranges::count_if(out.request.placed, is_whole);
  if (whole != 0 && static_cast<size_t>(whole) != out.request.placed.size())
    return refuse("it has whole devices and parts of devices; use two claims");
  complete_request(context, claim, out.request);
  invariant(!out.request.placed.empty() && out.request.holder,
            "the slice of a claim has devices and a holder");
  out.devices.front().cdi_device =
      fmt::format("carve.dev/claim={}", AttachPoint::of_claim(claim.name.uid).name);
  return out;
}

std::optional<ClaimName> claim_of(const api::Slice& slice) {
  if (!slice.holder || !slice.holder->claim) return std::nullopt;
  const auto label = [&](const char* key) {
    const auto found = slice.labels.find(key);
    return found == slice.labels.end() ? std::string() : found->second;
  };
  return ClaimName{label(claim_namespace_label), label(claim_name_label), *slice.holder->claim};
}

}  // namespace carve::kubernetes::node
