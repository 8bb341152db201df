// The dialects of container requests: the limits of each, and how they are read. A new dialect needs a file
// that reads it, a row here, and test rows in testing/dialect_rows.h.
#pragma once

#include <optional>
#include <span>

#include "dialects/pod/container_reader.h"

namespace carve::dialects {

struct DialectRow {
  Dialect dialect;
  std::span<const char* const> limits;  // Its keys.
  // Returns the container's request, or no value if there is none or after an error.
  std::optional<Amounts> (*read)(ContainerReader&);
};

// Returns the dialects in the order in which messages list them.
std::span<const DialectRow> dialect_rows();

// Returns the dialect of the container's limits, or null. Limits of two dialects in one container are an
// error.
const DialectRow* dialect_of(ContainerReader&);

// Rejects unknown limits with Carve's prefix.
void refuse_unknown_limits(ContainerReader&);

// Reads Carve's annotations about the slices of a pod, whatever the dialect of its limits.
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
