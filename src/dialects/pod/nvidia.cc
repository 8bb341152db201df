// NVIDIA's own keys, and HAMi's, which extend them.
#include <algorithm>
#include <sstream>

#include "core/request.h"
#include "dialects/pod/dialects.h"
#include "dialects/pod/keys.h"

namespace carve::dialects {
namespace {

constexpr const char* hami_core_mode = "hami-core";
constexpr uint64_t max_hami_memory_mib = 1'000'000'000;

std::optional<uint32_t> hami_devices(ContainerReader& reader) {
  const JsonMember devices = reader.limit(keys::nvidia_gpu);
  if (!devices) return 1;
  const auto count = reader.count(devices, keys::nvidia_gpu, {.low = 1, .high = max_slice_devices});
  if (!count) return std::nullopt;
  return static_cast<uint32_t>(*count);
}

std::vector<std::string> comma_list(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, ',');)
    if (!one.empty()) out.push_back(one);
  return out;
}

// HAMi compares parts of names: "A10" matches "NVIDIA A10".
bool names(const std::vector<std::string>& words, const std::string& model) {
  return std::ranges::any_of(words,
                             [&](const std::string& word) { return model.find(word) != std::string::npos; });
}

void read_models(ContainerReader& reader, Amounts& out) {
  const JsonMember wanted = reader.annotation(keys::hami_use_type);
  const JsonMember unwanted = reader.annotation(keys::hami_no_type);
  if (!wanted && !unwanted) return;
  const auto use = comma_list(wanted ? reader.text(wanted) : ""),
             avoid = comma_list(unwanted ? reader.text(unwanted) : "");
  for (const std::string& model : reader.settings().models)
    if ((use.empty() || names(use, model)) && !names(avoid, model)) out.models.push_back(model);
  if (!out.models.empty() || out.models.size() > max_allowed_models) return;
  const JsonMember& named = wanted ? wanted : unwanted;
  reader.refuse(named, "{}: no device has an allowed model; the models are {}",
                wanted ? keys::hami_use_type : keys::hami_no_type,
                reader.settings().models.empty()
                    ? "none"
                    : fmt::format("{}", fmt::join(reader.settings().models, ", ")));
}

void read_choice(ContainerReader& reader, Amounts& out) {
  if (!reader.settings().models.empty()) read_models(reader, out);
  if (const JsonMember uuids = reader.annotation(keys::hami_use_uuid))
    out.device_uuids = comma_list(reader.text(uuids));
  if (const JsonMember unwanted = reader.annotation(keys::hami_no_uuid))
    reader.refuse(unwanted, "{} is not supported; list the allowed devices in {}", keys::hami_no_uuid,
                  keys::hami_use_uuid);
  if (const JsonMember mode = reader.annotation(keys::hami_mode); mode && reader.text(mode) != hami_core_mode)
    reader.refuse(mode, "{}: {} is not supported, because slices are not MIG devices; leave it out",
                  keys::hami_mode, objects::typed(reader.text(mode)));
  const JsonMember strategy = reader.annotation(keys::hami_strategy);
  if (!strategy) return;
  out.strategy = parse_node_strategy(reader.text(strategy));
  if (!out.strategy)
    reader.refuse(strategy, "{}: {}; must be {}", keys::hami_strategy, objects::typed(reader.text(strategy)),
                  node_strategy_names());
}

}  // namespace

std::optional<Amounts> read_nvidia(ContainerReader& reader) {
  if (!reader.settings().plain_nvidia_is_whole) return std::nullopt;
  const auto devices = hami_devices(reader);
  if (!devices) return std::nullopt;
  return Amounts{.devices = *devices, .exclusive = true};
}

std::optional<Amounts> read_hami(ContainerReader& reader) {
  const JsonMember memory = reader.limit(keys::hami_memory), part = reader.limit(keys::hami_part);
  const JsonMember cores = reader.limit(keys::hami_cores), priority = reader.limit(keys::hami_priority);
  const auto devices = hami_devices(reader);
  if (memory && part) {
    reader.refuse(part, "{} and {} are mutually exclusive", keys::hami_memory, keys::hami_part);
    return std::nullopt;
  }
  const auto mib =
      reader.count(memory, keys::hami_memory,
                   {.low = 1, .high = max_hami_memory_mib, .unit = "MiB", .unit_bytes = 1 << 20});
  const auto percent = reader.count(part, keys::hami_part, {.low = 1, .high = 100, .unit = "percent"});
  const auto share = reader.count(cores, keys::hami_cores, {.low = 0, .high = 100, .unit = "percent"});
  const auto rank = reader.count(priority, keys::hami_priority, {.low = 0, .high = 1});
  if (!devices || (memory && !mib) || (part && !percent) || (cores && !share)) return std::nullopt;
  Amounts out{.devices = *devices};
  if (mib) out.memory_bytes = *mib << 20;
  if (!mib) out.memory_bp = static_cast<uint32_t>(percent.value_or(100) * 100);
  if (share && *share > 0) out.share_bp = static_cast<uint32_t>(*share * 100);
  if (rank) out.latency_class = *rank == 0 ? LatencyClass::latency : LatencyClass::batch;
  read_choice(reader, out);
  return out;
}

}  // namespace carve::dialects
