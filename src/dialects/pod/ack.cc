// ACK's keys: memory in units, and a percentage of compute.
#include "core/request.h"
#include "dialects/pod/dialects.h"
#include "dialects/pod/keys.h"
#include "objects/rules/service_terms.h"

namespace carve::dialects {
namespace {

std::string unit_text(const PodSettings& settings) {
  if (!settings.unit) return "units";
  return *settings.unit == MemoryUnit::gib ? "1 GiB" : "128 MiB";
}

// Returns the number of devices in the pod's label, or no value after an error.
std::optional<uint32_t> ack_devices(ContainerReader& reader, const JsonMember& label) {
  if (!label) return 1;
  const std::string given = reader.text(label);
  const auto devices = ContainerReader::number(given, 1, max_slice_devices);
  if (!devices) {
    reader.refuse(label, "{}: {} is not a whole number from 1 to {}", keys::ack_count, objects::typed(given),
                  max_slice_devices);
    return std::nullopt;
  }
  return static_cast<uint32_t>(*devices);
}

}  // namespace

std::optional<Amounts> read_ack(ContainerReader& reader) {
  const JsonMember memory = reader.limit(keys::ack_memory), core = reader.limit(keys::ack_core);
  const JsonMember elastic = reader.label(keys::ack_elastic);
  if (elastic && reader.text(elastic) == "true") reader.refuse(elastic, "{}", elastic_message);
  const JsonMember label = reader.label(keys::ack_count);
  const auto devices = ack_devices(reader, label);
  if (!memory) {
    reader.refuse(core, "{} needs {}", keys::ack_core, keys::ack_memory);
    return std::nullopt;
  }
  const std::string unit = unit_text(reader.settings());
  const auto units = reader.count(
      memory, keys::ack_memory,
      {.low = 1,
       .high = max_memory_units,
       .text = fmt::format("a whole number of {}, at least 1", unit),
       .unit = reader.settings().unit ? "units of " + unit : "the node's units, 1 GiB or 128 MiB",
       .unit_bytes = reader.settings().unit ? size_of(*reader.settings().unit).count : 0});
  if (core && label)
    reader.refuse(core, "with {}, only memory is shared; leave out {}", keys::ack_count, keys::ack_core);
  const auto percent = reader.count(core, keys::ack_core, {.low = 5, .high = 100, .step = 5});
  if (!units || !devices) return std::nullopt;
  if (*units % *devices != 0) {
    reader.refuse(label, "{}: {} does not divide {} units{} equally", keys::ack_count, *devices, *units,
                  reader.settings().unit ? " of " + unit : "");
    return std::nullopt;
  }
  Amounts out{.memory_units = static_cast<uint32_t>(*units / *devices), .devices = *devices};
  if (percent) {
    out.share_bp = static_cast<uint32_t>(*percent * 100);
    out.isolation = Isolation::memory_and_compute;
  }
  return out;
}

}  // namespace carve::dialects
