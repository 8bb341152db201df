// What `carve get`, `describe` and `explain` print of nodes and node pools.
#pragma once

#include <string>

#include "cli/services.h"

namespace carve::cli {

// Prints the objects of `carve get nodes|pools [NAME]`. `output`: table, wide, json, name.
void get_nodes_or_pools(Context& context, const ObjectName& object, const std::string& selector,
                        const std::string& output);
// The row of a node or a pool, for tables of changes. Fails with a sentence if the JSON is no such object.
const std::vector<std::string>& change_heading(objects::Kind kind);
Result<std::vector<std::string>, std::string> change_cells(objects::Kind kind, const std::string& json);
void describe_node_or_pool(Context& context, const ObjectName& object);

// `carve explain slicing --pool NAME`
void add_explain_slicing(CLI::App* explain, Context& context);

// Verbs of the controller's nodes below `carve node`: stop, start, restart, pool.
void add_node_verbs(CLI::App* node, Context& context);

// Returns "/v1/nodes/NAME/VERB".
std::string node_path(const std::string& name, const std::string& verb = "");

}  // namespace carve::cli
