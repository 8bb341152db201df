// What a node's labels ask for: our four labels and their synonyms of other clusters
// (fronts/label_synonyms.h). They are desired values; the effective ones are in the annotation
// carve.dev/devices.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/slice.h"
#include "wire/kube/node_devices.h"

namespace carve::kubelet {

inline constexpr const char* bookkeeper_label = "carve.dev/bookkeeper";

// Which of the two ways in a node has: the scheduler extender with the device plugin, or DRA.
enum class Way : uint8_t { extender = 0, dra = 1 };

struct NodeWishes {
  Way way = Way::extender;
  std::optional<kube::NodeMode> mode;
  std::optional<Policy> policy;
  Strategy placement = Strategy::binpack;

  friend bool operator==(const NodeWishes&, const NodeWishes&) = default;
};

// Fails with a sentence if a label has a value that it cannot have, or if two synonyms differ: then the node
// advertises nothing. Other labels do not matter.
Result<NodeWishes, std::string> read_wishes(const std::map<std::string, std::string>& labels);

}  // namespace carve::kubelet

namespace carve {
template <>
struct Words<kubelet::Way> {
  static constexpr const char* kind = "bookkeeper of a node";
  static constexpr std::string_view words[] = {"extender", "dra"};
};
}  // namespace carve
