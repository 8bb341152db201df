// The events that the kinds of objects have in addition to those of every kind. They are the entries of the
// kinds' rows (kind_table.h).
#pragma once

#include <string>
#include <vector>

#include "controller/objects/object_changes.h"

namespace carve::controller {

// Return the message of the event of a new object.
std::string made_workload(const Object&);
std::string made_job(const Object&);
std::string made_node(const Object&);
std::string made_pool(const Object&);

// Add the events of a change.
void add_workload_events(std::vector<ChangeEvent>&, const Object& before, const Object& after);
void add_node_events(std::vector<ChangeEvent>&, const Object& before, const Object& after);
void add_pool_events(std::vector<ChangeEvent>&, const Object& before, const Object& after);
void add_budget_events(std::vector<ChangeEvent>&, const Object& before, const Object& after);
void add_job_events(std::vector<ChangeEvent>&, const Object& before, const Object& after);

}  // namespace carve::controller
