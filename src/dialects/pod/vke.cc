// VKE's keys (mGPU): memory in MiB and compute in percent, both as totals of the container.
#include <algorithm>

#include "core/request.h"
#include "dialects/pod/dialects.h"
#include "dialects/pod/keys.h"

namespace carve::dialects {
namespace {

constexpr uint64_t max_vke_devices = 8;
constexpr uint64_t min_memory_mib = 256;         // One device needs more, each of several at least this.
constexpr uint64_t min_total_memory_mib = 1024;  // Total: more than this on several devices.
constexpr uint64_t max_vke_memory_mib = 1'000'000'000;
constexpr const char* core_name = "mgpu-core";
constexpr const char* memory_name = "mgpu-memory";
constexpr const char* core_range = "1 to 100, or a multiple of 100 for whole cards";

// Returns the container's number in the annotation "2,1,3", which has one number per container. Returns no
// value after an error.
std::optional<uint32_t> vke_devices(ContainerReader& reader) {
  const JsonMember annotation = reader.annotation(keys::vke_count);
  if (!annotation || reader.container().index >= reader.containers()) return 1;  // Sidecars have no number.
  const std::string given = reader.text(annotation);
  const size_t numbers = static_cast<size_t>(std::ranges::count(given, ',')) + 1;
  if (numbers != reader.containers()) {
    reader.refuse(annotation,
                  "container-multiple-gpu: {} number{} for {} container{}; write one for each container",
                  numbers, numbers == 1 ? "" : "s", reader.containers(), reader.containers() == 1 ? "" : "s");
    return std::nullopt;
  }
  std::string_view rest = given;
  for (size_t i = 0; i < reader.container().index; ++i) rest.remove_prefix(rest.find(',') + 1);
  const auto devices = ContainerReader::number(rest.substr(0, rest.find(',')), 1, max_vke_devices);
  if (!devices) {
    reader.refuse(annotation, "container-multiple-gpu: {} may contain only numbers from 1 to {}",
                  objects::typed(given), max_vke_devices);
    return std::nullopt;
  }
  return static_cast<uint32_t>(*devices);
}

std::optional<Amounts> whole_cards(ContainerReader& reader, const JsonMember& core) {
  const auto percent =
      reader.count(core, core_name, {.low = 1, .high = 100 * max_slice_devices, .text = core_range});
  if (!percent) return std::nullopt;
  if (*percent % 100 == 0)
    return Amounts{.devices = static_cast<uint32_t>(*percent / 100), .exclusive = true};
  if (*percent > 100)
    reader.refuse(core, "{}: {}; must be {}", core_name, *percent, core_range);
  else
    reader.refuse(core, "{} needs {}", core_name, memory_name);
  return std::nullopt;
}

bool is_vke_memory(ContainerReader& reader, const JsonMember& memory, uint64_t mib, uint32_t devices) {
  if (devices == 1) {
    if (mib > min_memory_mib) return true;
    reader.refuse(memory, "{}: {} MiB is too little; single-card sharing needs more than {} MiB", memory_name,
                  mib, min_memory_mib);
  } else if (mib <= min_total_memory_mib) {
    reader.refuse(memory, "{}: {} MiB over {} cards is too little; multi-card sharing needs more than {} MiB",
                  memory_name, mib, devices, min_total_memory_mib);
  } else if (mib % devices != 0) {
    reader.refuse(memory, "{}: {} MiB does not divide equally over {} cards", memory_name, mib, devices);
  } else if (mib / devices < min_memory_mib) {
    reader.refuse(memory, "{}: {} MiB over {} cards is too little; each needs at least {} MiB", memory_name,
                  mib, devices, min_memory_mib);
  } else {
    return true;
  }
  return false;
}

}  // namespace

std::optional<Amounts> read_vke(ContainerReader& reader) {
  const JsonMember memory = reader.limit(keys::vke_memory), core = reader.limit(keys::vke_core);
  const JsonMember elastic = reader.annotation(keys::vke_elastic);
  if (elastic && reader.text(elastic) == "enforce") reader.refuse(elastic, "{}", elastic_message);
  const auto policy = reader.word<Policy>(reader.annotation(keys::vke_policy), "mgpu-compute-policy");
  const auto devices = vke_devices(reader);
  if (!memory) return whole_cards(reader, core);
  if (!core) {
    reader.refuse(memory, "{} needs {}", memory_name, core_name);
    return std::nullopt;
  }
  if (!devices) return std::nullopt;
  const auto mib = reader.count(memory, memory_name,
                                {.low = 0, .high = max_vke_memory_mib, .unit = "MiB", .unit_bytes = 1 << 20});
  const auto percent = reader.count(
      core, core_name,
      {.low = 1, .high = 100 * uint64_t{*devices}, .text = *devices == 1 ? std::string(core_range) : ""});
  if (!mib || !percent || !is_vke_memory(reader, memory, *mib, *devices)) return std::nullopt;
  if (*percent * 100 % *devices != 0) {
    reader.refuse(core, "{}: {} divided over {} cards is not a multiple of 0.01 %", core_name, *percent,
                  *devices);
    return std::nullopt;
  }
  return Amounts{.memory_bytes = *mib / *devices << 20,
                 .share_bp = static_cast<uint32_t>(*percent * 100 / *devices),
                 .devices = *devices,
                 .isolation = Isolation::memory_and_compute,
                 .policy = policy};
}

}  // namespace carve::dialects
