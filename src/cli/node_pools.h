// Output of `carve get`, `describe` and `explain` for nodes and node pools.
#pragma once

#include <string>

#include "cli/services.h"

namespace carve::cli {

inline bool is_node_or_pool(objects::Kind kind) {
  return kind == objects::Kind::node || kind == objects::Kind::pool;
}

// Prints the objects of `carve get nodes|pools [NAME]`. `output` is table, wide, json or name.
void get_nodes_or_pools(Context& context, const ObjectName& object, const std::string& selector,
                        const std::string& output);
// Returns the row for a node or a pool in tables of changes. Fails with a message if the JSON is not such an
// object.
const std::vector<std::string>& change_heading(objects::Kind kind);
Result<std::vector<std::string>, std::string> change_cells(objects::Kind kind, const std::string& json);
void describe_node_or_pool(Context& context, const ObjectName& object);

// `carve explain slicing --pool NAME`
void add_explain_slicing(CLI::App* explain, Context& context);

// Adds the verbs below `carve node` for the controller's nodes: stop, start, restart, pool.
void add_node_verbs(CLI::App* node, Context& context);

// Returns "/v1/nodes/NAME/VERB".
std::string node_path(const std::string& name, const std::string& verb = "");

}  // namespace carve::cli
