// Annotation carve.dev/ledger of a node: parts of slices in its agent's ledger that the annotations of the
// node's pods do not have, or have with other amounts. Its agent writes it when a difference lasts; without a
// difference there is no such annotation. One line of JSON:
//
//   {"v":1,"parts":[{"slice":"k7","pod":"a/web-0","uid":"3b2c...","container":"web","device":"GPU-1a2b...",
//    "memory":2147483648,"share_bp":0}],"left_out":0}
#pragma once

#include <string>
#include <vector>

#include "core/device.h"
#include "wire/kube/annotation.h"

namespace carve::kube {

inline constexpr const char* ledger_annotation = "carve.dev/ledger";
inline constexpr uint32_t ledger_version = 1;
inline constexpr size_t max_ledger_parts = 16;  // With the longest names 16 parts fit an annotation.

// What the ledger has of one device.
struct LedgerPart {
  std::string slice;
  std::string pod;  // NAMESPACE/NAME; empty: the slice is of no pod.
  std::string uid;  // Of the pod.
  std::string container;
  Uuid device;
  uint64_t memory = 0;  // Bytes.
  uint32_t share_bp = 0;

  friend bool operator==(const LedgerPart&, const LedgerPart&) = default;
};

struct NodeLedger {
  uint32_t v = ledger_version;
  std::vector<LedgerPart> parts;
  uint32_t left_out = 0;  // Parts beyond max_ledger_parts.

  friend bool operator==(const NodeLedger&, const NodeLedger&) = default;
};

inline Result<NodeLedger, std::string> read_ledger(std::string_view text) {
  return read_annotation<NodeLedger>(ledger_annotation, text, ledger_version);
}

}  // namespace carve::kube
