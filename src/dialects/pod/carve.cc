// Carve's own keys. Amounts are totals of the container, because the scheduler, quotas and the autoscaler add
// them up.
#include <algorithm>
#include <sstream>

#include "core/request.h"
#include "dialects/pod/dialects.h"
#include "dialects/pod/keys.h"
#include "kubernetes/format/quantity.h"

namespace carve::dialects {
namespace {

constexpr uint64_t mib_bytes = 1 << 20;

constexpr const char* annotations[] = {keys::policy, keys::isolation,    keys::latency_class, keys::strategy,
                                       keys::models, keys::device_uuids, keys::spill,         keys::parts};

std::string given(const JsonMember& member) {
  const std::string text =
      member.value->is_string() ? member.value->get<std::string>() : member.value->dump();
  return text.substr(0, 40);
}

std::string at(ContainerReader& reader) { return fmt::format("container {}: ", reader.container().name); }

std::optional<uint32_t> carve_devices(ContainerReader& reader) {
  const JsonMember devices = reader.limit(keys::devices);
  if (!devices) return 1;
  const auto count = reader.count(devices, at(reader) + keys::devices, {.low = 1, .high = max_slice_devices});
  if (!count) return std::nullopt;
  return static_cast<uint32_t>(*count);
}

// Returns the bytes on each device, or no value after an error.
std::optional<uint64_t> memory_of(ContainerReader& reader, const JsonMember& memory, uint32_t devices) {
  const auto bytes = kubernetes::parse_quantity(given(memory));
  if (!bytes || *bytes == 0) {
    reader.refuse(memory, "{}{}: {} is not an amount of memory; write 4Gi or 4096Mi", at(reader),
                  keys::memory, given(memory));
  } else if (*bytes < mib_bytes) {
    // The user probably meant a small number as GiB and a large number as MiB.
    const std::string larger =
        *bytes < 1024 ? fmt::format("{}Gi", *bytes) : kubernetes::quantity_of_bytes(*bytes * mib_bytes);
    reader.refuse(memory, "{}{}: {} is {} bytes; write {} or {}Mi", at(reader), keys::memory, given(memory),
                  *bytes, larger, *bytes);
  } else if (*bytes % mib_bytes != 0) {
    reader.refuse(memory, "{}{}: {} is not in whole MiB; write {}Mi", at(reader), keys::memory, given(memory),
                  *bytes / mib_bytes + 1);
  } else if (*bytes / mib_bytes % devices != 0) {
    reader.refuse(memory, "{}{}: {} does not divide equally over {} devices; request a multiple of {}Mi",
                  at(reader), keys::memory, given(memory), devices, devices);
  } else {
    return *bytes / devices;
  }
  return std::nullopt;
}

// Returns the basis points of each device, or no value after an error.
std::optional<uint32_t> share_of(ContainerReader& reader, const JsonMember& compute, uint32_t devices) {
  const auto percent = kubernetes::parse_quantity(given(compute));
  if (percent && *percent >= devices && *percent <= uint64_t{100} * devices && *percent * 100 % devices == 0)
    return static_cast<uint32_t>(*percent * 100 / devices);
  reader.refuse(compute, "{}{}: {} on {} device{}; {}", at(reader), keys::compute, given(compute), devices,
                devices == 1 ? "" : "s",
                percent && *percent >= devices && *percent <= uint64_t{100} * devices
                    ? "the share of each device is not a multiple of 0.01 %"
                    : "must be 1 to 100 for each device");
  return std::nullopt;
}

// Parses "8Gi" as in limits, or the forms that users write elsewhere: "8GiB", "50%".
Result<Part, std::string> parse_part_memory(std::string_view text) {
  const auto bytes = kubernetes::parse_quantity(text);
  if (!bytes || text.find_first_not_of("0123456789.") == std::string_view::npos)
    return carve::parse_memory(text);
  if (*bytes % mib_bytes != 0 || *bytes == 0)
    return tl::unexpected(std::string("is not an amount of memory in whole MiB; write 4Gi or 4096Mi"));
  return Part{.memory_bytes = *bytes};
}

// Returns the amounts of a container with unequal parts, or no value after an error.
std::optional<Amounts> read_parts(ContainerReader& reader, const JsonMember& member, uint32_t devices) {
  const std::string text = reader.text(member);
  auto parts = parse_parts(text, parse_part_memory);
  if (!parts) {
    reader.refuse(member, "{}: {}", keys::parts, parts.error());
    return std::nullopt;
  }
  if (parts->size() != devices) {
    reader.refuse(member, "{}{}: {} parts, but {} is {}; the two must be equal", at(reader), keys::parts,
                  parts->size(), keys::devices, devices);
    return std::nullopt;
  }
  for (const Part& part : *parts)
    if (part.share_bp.has_value() != parts->front().share_bp.has_value()) {
      reader.refuse(member, "{}: request a compute share on each device or on none", keys::parts);
      return std::nullopt;
    }
  Amounts out{.parts = std::move(*parts)};
  if (out.has_share()) out.isolation = Isolation::memory_and_compute;
  return out;
}

std::vector<std::string> words_of(ContainerReader& reader, const char* key) {
  std::vector<std::string> out;
  const JsonMember member = reader.annotation(key);
  std::istringstream in(member ? reader.text(member) : "");
  for (std::string word; std::getline(in, word, ',');)
    if (!word.empty()) out.push_back(word);
  return out;
}

// If the dialect also has a value, both must be equal.
template <Worded E>
void read_word(ContainerReader& reader, const char* key, std::optional<E>& out) {
  const JsonMember member = reader.annotation(key);
  const auto word = reader.word<E>(member, key);
  if (word && out && *out != *word)
    reader.refuse(member, "{}: {} contradicts {}, which the pod also requests; keep one", key, text(*word),
                  text(*out));
  if (word) out = word;
}

void read_strategy(ContainerReader& reader, Amounts& out) {
  const JsonMember member = reader.annotation(keys::strategy);
  if (!member) return;
  out.strategy = parse_node_strategy(reader.text(member));
  if (!out.strategy)
    reader.refuse(member, "{}: {}; must be {}", keys::strategy, given(member), node_strategy_names());
}

void read_spill(ContainerReader& reader, Amounts& out) {
  const JsonMember member = reader.annotation(keys::spill);
  if (!member) return;
  const auto bytes = kubernetes::parse_quantity(given(member));
  if (bytes && *bytes > 0 && *bytes % mib_bytes == 0)
    out.spill_bytes = *bytes;
  else
    reader.refuse(member, "{}: {} is not an amount of memory in whole MiB; write 4Gi or 4096Mi", keys::spill,
                  given(member));
}

}  // namespace

std::optional<Amounts> read_carve(ContainerReader& reader) {
  const JsonMember memory = reader.limit(keys::memory), compute = reader.limit(keys::compute);
  const auto devices = carve_devices(reader);
  if (!memory && compute) {
    reader.refuse(compute, "{}{} needs {}; without it, {} requests whole devices", at(reader), keys::compute,
                  keys::memory, keys::devices);
    return std::nullopt;
  }
  if (!devices) return std::nullopt;
  if (const JsonMember parts = reader.annotation(keys::parts);
      parts && !memory && reader.limit(keys::devices))
    return read_parts(reader, parts, *devices);
  if (!memory) return Amounts{.devices = *devices, .exclusive = true};
  const auto bytes = memory_of(reader, memory, *devices);
  const auto share = compute ? share_of(reader, compute, *devices) : std::optional<uint32_t>();
  if (!bytes || (compute && !share)) return std::nullopt;
  Amounts out{.memory_bytes = bytes, .share_bp = share, .devices = *devices};
  if (share) out.isolation = Isolation::memory_and_compute;
  return out;
}

void read_slice_annotations(ContainerReader& reader, Amounts& out) {
  for (const auto& [key, member] : reader.annotations_with(keys::prefix))
    if (std::ranges::find(annotations, key) == std::end(annotations))
      reader.refuse(member, "{}: unknown annotation; use one of {}", key.substr(0, 80),
                    fmt::join(annotations, ", "));
  for (const char* key : annotations)
    if (const JsonMember label = reader.label(key))
      reader.refuse(label, "{}: a label of this name has no effect; write it as an annotation", key);
  if (const JsonMember parts = reader.annotation(keys::parts); parts && out.parts.empty())
    reader.refuse(
        parts, "{}: sets the memory and share of each device in {}; leave out other amounts of the container",
        keys::parts, keys::devices);
  read_word(reader, keys::policy, out.policy);
  read_word(reader, keys::isolation, out.isolation);
  read_word(reader, keys::latency_class, out.latency_class);
  read_strategy(reader, out);
  read_spill(reader, out);
  if (auto models = words_of(reader, keys::models); !models.empty()) out.models = std::move(models);
  if (auto uuids = words_of(reader, keys::device_uuids); !uuids.empty()) out.device_uuids = std::move(uuids);
}

}  // namespace carve::dialects
