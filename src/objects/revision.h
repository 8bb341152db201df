// The revisions of a workload: GET /v1/services/NAME/revisions, POST /v1/services/NAME/undo.
#pragma once

#include "objects/service_object.h"
#include "wire/api/json.h"

namespace carve::objects {

struct RevisionView {
  uint32_t revision = 0;
  std::string created_at;
  std::optional<Gpu> gpu;
  std::vector<std::string> command;
  std::string image;
  std::string restarted_at;  // Time of the restart request that made the revision; empty if a change did.
};

struct RevisionList {
  std::vector<RevisionView> items;  // Oldest first; the last one is the current one.
};

struct UndoRequest {
  uint32_t revision = 0;  // 0 for the one before the current one.
};

}  // namespace carve::objects

CARVE_DECLARE_DOCUMENT(objects::RevisionList)
CARVE_DECLARE_DOCUMENT(objects::UndoRequest)
