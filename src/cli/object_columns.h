// The columns of each kind of object in the tables of `carve get` and `carve get -w`.
#pragma once

#include <string>
#include <vector>

#include "cli/services.h"

namespace carve::cli {

// Cells that are always shown, and cells for -o wide. A heading has the same form.
struct ObjectCells {
  std::vector<std::string> narrow, wide;
};

// Return the columns of a kind, and the cells of an object from its JSON. Fails if the JSON is not such an
// object. The columns NAMESPACE and AGE are those of every kind, and are added by the functions below.
ObjectCells workload_heading();
Result<ObjectCells, std::string> workload_cells(const std::string& json);

enum class NamespaceColumn : uint8_t { hidden, shown };
// Returns the heading of a kind.
std::vector<std::string> object_heading(objects::Kind, NamespaceColumn, bool wide);
// Returns the row of an object. AGE is the time from its creation to `now_ns`, UTC.
Result<std::vector<std::string>, std::string> object_cells(objects::Kind, const std::string& json,
                                                           NamespaceColumn, bool wide, uint64_t now_ns);

// Returns whether objects of the kind are in namespaces.
bool has_namespaces(objects::Kind);

}  // namespace carve::cli
