// ACK's words: memory in units, and a percentage of compute.
#include "core/request.h"
#include "fronts/pod/dialects.h"
#include "fronts/pod/keys.h"
#include "fronts/service_terms.h"

namespace carve::fronts {
namespace {

std::string unit_text(const PodSettings& settings) {
  if (!settings.unit) return "units";
  return *settings.unit == MemoryUnit::gib ? "1 GiB" : "128 MiB";
}

// Returns the number of devices that the pod's label has; no value: an error.
std::optional<uint32_t> ack_devices(ContainerReader& reader, const JsonMember& label) {
  if (!label) return 1;
  const std::string given = reader.text(label);
  const auto devices = ContainerReader::number(given, 1, max_slice_devices);
  if (!devices) {
    reader.refuse(label, "{}: {}; 1 to {}", keys::ack_count, typed(given), max_slice_devices);
    return std::nullopt;
  }
  return static_cast<uint32_t>(*devices);
}

}  // namespace

std::optional<ContainerRequest> read_ack(ContainerReader& reader) {
  const JsonMember memory = reader.limit(keys::ack_memory), core = reader.limit(keys::ack_core);
  const JsonMember elastic = reader.label(keys::ack_elastic);
  if (elastic && reader.text(elastic) == "true") reader.refuse(elastic, "{}", elastic_sentence);
  const JsonMember label = reader.label(keys::ack_count);
  const auto devices = ack_devices(reader, label);
  if (!memory) {
    reader.refuse(core, "{} needs {}", keys::ack_core, keys::ack_memory);
    return std::nullopt;
  }
  const std::string unit = unit_text(reader.settings());
  const auto units = reader.count(
      memory, keys::ack_memory,
      {.low = 1, .high = max_memory_units, .text = fmt::format("a whole number of {} from 1 up", unit)});
  if (core && label)
    reader.refuse(core, "{} shares memory only; leave out {}", keys::ack_count, keys::ack_core);
  const auto percent = reader.count(core, keys::ack_core, {.low = 5, .high = 100, .step = 5});
  if (!units || !devices) return std::nullopt;
  if (*units % *devices != 0) {
    reader.refuse(label, "{}: {} does not divide {} units{} equally", keys::ack_count, *devices, *units,
                  reader.settings().unit ? " of " + unit : "");
    return std::nullopt;
  }
  ContainerRequest out{.memory_units = static_cast<uint32_t>(*units / *devices), .devices = *devices};
  if (percent) {
    out.share_bp = static_cast<uint32_t>(*percent * 100);
    out.isolation = Isolation::memory_and_compute;
  }
  return out;
}

}  // namespace carve::fronts
