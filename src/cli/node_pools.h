// Output of `carve get`, `describe` and `explain` for nodes and node pools.
#pragma once

#include <string>

#include "cli/object_columns.h"
#include "cli/services.h"

namespace carve::cli {

inline bool is_node_or_pool(objects::Kind kind) {
  return kind == objects::Kind::node || kind == objects::Kind::pool;
}

// Return the columns of the kind, and the cells of a node or a pool from its JSON.
ObjectCells node_heading(objects::Kind kind);
Result<ObjectCells, std::string> node_cells(objects::Kind kind, const std::string& json);
void describe_node_or_pool(Context& context, const ObjectName& object);

// `carve explain slicing --pool NAME`
void add_explain_slicing(CLI::App* explain, Context& context);

// Adds the verbs below `carve node` for the controller's nodes: stop, start, restart, pool.
void add_node_verbs(CLI::App* node, Context& context);

// Returns "/v1/nodes/NAME/VERB".
std::string node_path(const std::string& name, const std::string& verb = "");

}  // namespace carve::cli
