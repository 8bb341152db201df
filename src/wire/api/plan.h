// Documents of the API, version 1: results of what-if questions. They change nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include "wire/api/json.h"

namespace carve::api {

// POST /v1/explain -> Explanation: the placement of this request, without granting it.
struct Verdict {
  uint32_t index = 0;
  std::string uuid;
  bool fits = false;
  std::string message;  // The reason for the result.
};

struct Explanation {
  bool fits = false;
  std::string message;
  std::vector<uint32_t> chosen;  // Device indexes.
  std::vector<Verdict> devices;
};

// GET /v1/consolidation?devices=K: the moves that would empty K more devices. No slice is moved.
struct ConsolidationMove {  // A slice of several devices has one move for each device that it leaves.
  std::string slice;
  uint32_t from = 0;  // Device indexes.
  uint32_t to = 0;
  uint64_t memory_bytes = 0;  // Bytes to move.
  uint32_t share_bp = 0;
};

struct ConsolidationPlan {
  uint32_t wanted = 0;
  std::vector<uint32_t> emptied;         // Device indexes; fewer than `wanted` if no plan was found.
  std::vector<ConsolidationMove> moves;  // In an order in which each move fits when it is made.
  uint64_t moved_bytes = 0;
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::Explanation)
CARVE_DECLARE_DOCUMENT(api::ConsolidationPlan)
