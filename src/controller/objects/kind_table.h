// Parsers of each kind's objects, one row per kind.
#pragma once

#include "controller/objects/typed_json.h"
#include "objects/kind.h"

namespace carve::controller {

struct KindRow {
  objects::Kind kind;
  // Parse the JSON of a stored object.
  TypedJson (*read_spec)(std::string json);
  TypedJson (*read_status)(std::string json);
};

const KindRow& row_of(objects::Kind);

}  // namespace carve::controller
