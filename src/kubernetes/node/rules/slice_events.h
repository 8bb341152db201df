// The node's events (events.k8s.io/v1): about pods and about the node itself.
#pragma once

#include <cstdint>
#include <string>

namespace carve::kubernetes::node {

inline constexpr size_t max_note_bytes = 1024;  // The API server rejects longer notes.

struct AboutObject {
  std::string kind;  // "Pod", "Node"
  std::string name_space;
  std::string name;
  std::string uid;
};

enum class Severity : uint8_t { normal, warning };

struct EventNote {
  AboutObject about;
  Severity severity = Severity::normal;
  std::string reason;  // "CarveSliceReady"
  std::string action;  // "StartContainer"
  std::string note;    // Cut to max_note_bytes.
};

// Returns the body to POST. `number` makes the name unique.
std::string event_document(const EventNote&, const std::string& node, int64_t utc_ns, uint64_t number);
// Returns the path to POST to. Events about nodes are in the namespace default.
std::string event_target(const EventNote&);

}  // namespace carve::kubernetes::node
