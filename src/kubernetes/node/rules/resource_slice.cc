#include "kubernetes/node/rules/resource_slice.h"

#include <algorithm>
#include <map>

#include "core/invariant.h"
#include "kubernetes/format/quantity.h"
#include "kubernetes/node/rules/advertisement.h"
#include "kubernetes/node/rules/resource_claim.h"

namespace carve::kubernetes::node {
namespace {

using api::Json;

constexpr const char* unhealthy_taint = "carve.dev/unhealthy";
constexpr const char* cordon_taint = "carve.dev/cordon";
constexpr const char* blocked_taint = "carve.dev/blocked";
constexpr size_t max_name_bytes = 240, kept_name_bytes = 200;
constexpr size_t max_attribute_bytes = 64;  // kubernetes 1.36.2, DeviceAttributeMaxValueLength.

std::string mebibytes(uint64_t bytes) { return quantity_of_bytes(bytes >> 20 << 20); }

Json taint(const char* key, const std::string& value, const char* effect) {
  Json out = {{"key", key}, {"effect", effect}};
  if (!value.empty()) out["value"] = value;
  return out;
}

bool serves(const api::Device& device) {
  return device.health.state == HealthState::ok && device.mode == DeviceMode::whole;
}

std::string health_value(const api::Device& device) {
  if (device.mode != DeviceMode::whole) return std::string(text(device.mode));
  if (device.health.state == HealthState::xid) return fmt::format("xid-{}", device.last_xid);
  return std::string(text(device.health.state));
}

Json taints_of(const ResourceSliceInput& in, const api::Device& device) {
  Json out = Json::array();
  if (!serves(device))
    out.push_back(taint(unhealthy_taint, health_value(device), in.ends_pods ? "NoExecute" : "NoSchedule"));
  if (const auto uuid = parse_uuid(device.uuid); uuid && in.cordoned.contains(*uuid))
    out.push_back(taint(cordon_taint, "", "NoSchedule"));
  if (!in.blocked.empty()) out.push_back(taint(blocked_taint, in.blocked, "NoSchedule"));
  return out;
}

// A policy of amounts that a request may leave out.
Json amounts(const std::string& initial, const std::string& min, const std::string& max,
             const std::string& step) {
  return {{"default", initial}, {"validRange", {{"min", min}, {"max", max}, {"step", step}}}};
}

// Returns the least memory that a slice of the device can use: the agent rejects one that is smaller than a
// context. Kubernetes raises smaller requests to it.
uint64_t least_memory(const ResourceSliceInput& in, const api::Device& device) {
  const uint64_t context = in.agent.node.contexts_in_slice ? device.context_bytes : 0;
  return std::max<uint64_t>((context + (1 << 20) - 1) >> 20 << 20, 1 << 20);
}

Json capacity_of(const ResourceSliceInput& in, const api::Device& device, bool is_shared) {
  const std::string memory = mebibytes(device.usable_bytes);
  if (!is_shared) return {{"memory", {{"value", memory}}}};
  Json out = {{"memory",
               {{"value", memory},
                {"requestPolicy", amounts(memory, mebibytes(least_memory(in, device)), memory, "1Mi")}}},
              {"slices",
               {{"value", std::to_string(device.max_slices)},
                {"requestPolicy", {{"default", "1"}, {"validValues", {"1"}}}}}}};
  if (in.mode != NodeMode::memory_and_compute) return out;
  const bool are_weights = device.policy.effective == Policy::native_burst_share;
  out["compute"] = {{"value", std::to_string(are_weights ? compute_of_weights : compute_of_device)},
                    {"requestPolicy", amounts("0", "0", "100", "1")}};
  return out;
}

Json device_of(const ResourceSliceInput& in, const api::Device& device) {
  const bool is_shared = in.mode != NodeMode::exclusive;
  const auto word = [](std::string_view value) {
    return Json{{"string", value.substr(0, max_attribute_bytes)}};
  };
  Json out = {{"name", device_name(device.index)},
              {"allowMultipleAllocations", is_shared},
              {"attributes",
               {{"uuid", word(device.uuid)},
                {"model", word(device.name)},
                {"index", {{"int", device.index}}},
                {"policy", word(text(device.policy.effective.value_or(device.policy.desired)))},
                {"mode", word(text(in.mode))},
                {"enforcement", word(text(in.agent.node.enforcement.level))},
                {"simulated", {{"bool", device.simulated}}}}},
              {"capacity", capacity_of(in, device, is_shared)}};
  if (Json taints = taints_of(in, device); !taints.empty()) out["taints"] = std::move(taints);
  return out;
}

// Adds the devices that are gone but still have slices. They stay until the last claim is gone.
std::vector<api::Device> devices_of(const api::AgentReport& agent) {
  std::vector<api::Device> out = agent.devices;
  for (const api::Slice& slice : agent.slices)
    for (const api::SlicePart& part : slice.parts) {
      if (std::ranges::find(out, part.uuid, &api::Device::uuid) != out.end()) continue;
      if (std::ranges::find(out, part.index, &api::Device::index) != out.end()) continue;
      api::Device& gone = out.emplace_back();
      gone.index = part.index;
      gone.uuid = part.uuid;
      gone.name = part.device_name;
      gone.usable_bytes = part.usable_bytes;
      gone.max_slices = max_slice_devices;
      gone.health = {.state = HealthState::lost, .reason = "the device is gone"};
    }
  std::ranges::sort(out, {}, &api::Device::index);
  if (out.size() > max_slice_object_devices) out.resize(max_slice_object_devices);
  return out;
}

// The API server adds a time to each taint. A time counts as the writer's only if the writer sets it.
Json without_times(Json spec) {
  if (!spec.contains("devices")) return spec;
  for (Json& device : spec["devices"])
    if (device.contains("taints"))
      for (Json& each : device["taints"]) each.erase("timeAdded");
  return spec;
}

void keep_times(const Json& stored, Json& wanted) {
  const auto key_of = [](const Json& device, const Json& each) {
    return fmt::format("{} {} {} {}", device.value("name", ""), each.value("key", ""),
                       each.value("value", ""), each.value("effect", ""));
  };
  std::map<std::string, Json> times;
  for (const Json& device : stored.value("devices", Json::array()))
    for (const Json& each : device.value("taints", Json::array()))
      if (each.contains("timeAdded")) times[key_of(device, each)] = each["timeAdded"];
  for (Json& device : wanted["devices"]) {
    if (!device.contains("taints")) continue;
    for (Json& each : device["taints"])
      if (const auto time = times.find(key_of(device, each)); time != times.end())
        each["timeAdded"] = time->second;
  }
}

// Compares without the order of the keys, which the API server changes.
bool is_same(const Json& a, const Json& b) { return nlohmann::json(a) == nlohmann::json(b); }

uint64_t generation_of(const Json& object) {
  const Json generation = object.value(Json::json_pointer("/spec/pool/generation"), Json(0));
  return generation.is_number_integer()
             ? static_cast<uint64_t>(std::max<int64_t>(generation.get<int64_t>(), 0))
             : 0;
}

}  // namespace

std::string resource_slice_name(const std::string& node) {
  if (node.size() <= max_name_bytes) return node + "-carve-0";
  uint64_t hash = 14695981039346656037u;  // FNV-1a.
  for (const char c : node) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return fmt::format("{}-{:016x}-carve-0", node.substr(0, kept_name_bytes), hash);
}

api::Json resource_slice(const ResourceSliceInput& in) {
  Json devices = Json::array();
  for (const api::Device& device : devices_of(in.agent)) devices.push_back(device_of(in, device));
  invariant(devices.size() <= max_slice_object_devices, "a ResourceSlice has a limited number of devices");
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata",
           {{"name", resource_slice_name(in.node)},
            {"ownerReferences",
             {{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", in.node}, {"uid", in.node_uid}}}}}},
          {"spec",
           {{"driver", dra_driver},
            {"nodeName", in.node},
            {"pool", {{"name", in.node}, {"generation", 1}, {"resourceSliceCount", 1}}},
            {"devices", std::move(devices)}}}};
}

api::Json updated_resource_slice(const api::Json& stored, api::Json wanted, uint64_t last_generation) {
  Json spec = stored.value("spec", Json::object());
  const uint64_t generation = generation_of(stored);
  wanted["spec"]["pool"]["generation"] = generation;
  if (generation >= last_generation && is_same(without_times(spec), wanted["spec"])) return nullptr;
  keep_times(spec, wanted["spec"]);
  wanted["spec"]["pool"]["generation"] = std::max(generation, last_generation) + 1;
  wanted["metadata"]["resourceVersion"] = stored.value(Json::json_pointer("/metadata/resourceVersion"), "");
  return wanted;
}

std::set<Uuid> read_cordon(std::string_view annotation) {
  std::set<Uuid> out;
  while (!annotation.empty()) {
    const size_t end = std::min(annotation.find(','), annotation.size());
    if (const auto uuid = parse_uuid(std::string(annotation.substr(0, end)))) out.insert(*uuid);
    annotation.remove_prefix(std::min(end + 1, annotation.size()));
  }
  return out;
}

std::vector<DeviceCondition> device_conditions(const std::string& node, const api::AgentReport& agent) {
  std::vector<DeviceCondition> out;
  for (const api::Device& device : devices_of(agent)) {
    const bool is_healthy = device.health.state == HealthState::ok;
    out.push_back({.pool = node,
                   .device = device_name(device.index),
                   .is_healthy = is_healthy,
                   .message = is_healthy ? "" : device.health.reason.substr(0, 1024)});
  }
  return out;
}

}  // namespace carve::kubernetes::node
