// The dialects of container requests: the limits of each, and how they are read. To add a dialect: a file
// that reads it, a row here, its rows in testing/dialect_rows.h.
#pragma once

#include <optional>
#include <span>

#include "dialects/pod/container_reader.h"

namespace carve::dialects {

struct DialectRow {
  Dialect dialect;
  std::span<const char* const> limits;  // Its keys.
  // Returns the container's request; no value if there is none, or after an error.
  std::optional<Amounts> (*read)(ContainerReader&);
};

// In the order of their names in messages.
std::span<const DialectRow> dialect_rows();

// Returns the dialect of the container's limits, or none. Two of them in one container are an error.
const DialectRow* dialect_of(ContainerReader&);

// Rejects unknown limits that begin with Carve's prefix.
void refuse_unknown_limits(ContainerReader&);

// Reads Carve's annotations about the slices of a pod, in whichever dialect its limits are.
void read_slice_annotations(ContainerReader&, Amounts&);

std::optional<Amounts> read_carve(ContainerReader&);
std::optional<Amounts> read_ack(ContainerReader&);
std::optional<Amounts> read_vke(ContainerReader&);
std::optional<Amounts> read_hami(ContainerReader&);
std::optional<Amounts> read_nvidia(ContainerReader&);

// Elastic containers run on machines that Carve does not manage.
inline constexpr std::string_view elastic_message =
    "elastic containers (VCI) do not support mGPU: only node (ECS) deployments do";

}  // namespace carve::dialects
