// Annotation carve.dev/ledger of a node: the parts of slices in its agent's ledger that are missing from the
// annotations of the node's pods or have other amounts there, and the results of changes that these
// annotations request. A difference is written if it persists, and a result while the pod's annotation has
// `memory_before`. The annotation is absent if there is neither a difference nor a result. One line of JSON:
//
//   {"v":1,"parts":[{"slice":"k7","pod":"a/web-0","uid":"3b2c...","container":"web","device":"GPU-1a2b...",
//    "memory":2147483648,"share_bp":0}],"left_out":0,
//    "results":[{"uid":"3b2c...","container":"web","memory":2147483648,"refusal":""}]}
#pragma once

#include <string>
#include <vector>

#include "core/device.h"
#include "kubernetes/format/annotation.h"

namespace carve::kubernetes {

inline constexpr const char* ledger_annotation = "carve.dev/ledger";
inline constexpr uint32_t ledger_version = 1;
inline constexpr size_t max_ledger_parts = 16;   // 16 parts fit an annotation even with the longest names.
inline constexpr size_t max_change_results = 8;  // 8 results fit in addition.
inline constexpr size_t max_refusal_bytes = 256;

// A slice's part on one device, according to the ledger.
struct LedgerPart {
  std::string slice;
  std::string pod;  // NAMESPACE/NAME; empty if the slice belongs to no pod.
  std::string uid;  // The pod's uid.
  std::string container;
  Uuid device;
  uint64_t memory = 0;  // Bytes.
  uint32_t share_bp = 0;

  friend bool operator==(const LedgerPart&, const LedgerPart&) = default;
};

// The outcome of a slice's change.
struct ChangeResult {
  std::string uid;  // The pod's uid.
  std::string container;
  uint64_t memory = 0;  // The requested bytes on each device.
  std::string refusal;  // Why the node rejected the change; empty if it was carried out.

  friend bool operator==(const ChangeResult&, const ChangeResult&) = default;
};

struct NodeLedger {
  uint32_t v = ledger_version;
  std::vector<LedgerPart> parts;
  uint32_t left_out = 0;  // Number of parts beyond max_ledger_parts.
  std::vector<ChangeResult> results;

  friend bool operator==(const NodeLedger&, const NodeLedger&) = default;
};

inline bool is_empty(const NodeLedger& ledger) { return ledger.parts.empty() && ledger.results.empty(); }

inline Result<NodeLedger, std::string> read_ledger(std::string_view text) {
  return read_annotation<NodeLedger>(ledger_annotation, text, ledger_version);
}

}  // namespace carve::kubernetes
