// The settings that a node's labels request: Carve's four labels and their synonyms in other products
// (dialects/label_synonyms.h). They are desired values; the effective ones are in the annotation
// carve.dev/devices.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/slice.h"
#include "kubernetes/format/node_devices.h"

namespace carve::kubernetes::node {

inline constexpr const char* bookkeeper_label = "carve.dev/bookkeeper";

// How pods get the node's devices: through the scheduler extender and the device plugin, or through DRA.
enum class Way : uint8_t { extender = 0, dra = 1 };

struct LabelSettings {
  Way way = Way::extender;
  std::optional<NodeMode> mode;
  std::optional<Policy> policy;
  Strategy placement = Strategy::binpack;

  friend bool operator==(const LabelSettings&, const LabelSettings&) = default;
};

// Reads the settings; other labels are ignored. Fails with a message if a label has an invalid value or if
// two synonyms differ; the node then advertises nothing.
Result<LabelSettings, std::string> read_label_settings(const std::map<std::string, std::string>& labels);

}  // namespace carve::kubernetes::node

namespace carve {
template <>
struct Words<kubernetes::node::Way> {
  static constexpr const char* kind = "bookkeeper of a node";
  static constexpr std::string_view words[] = {"extender", "dra"};
};
}  // namespace carve
