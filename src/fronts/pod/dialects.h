// The dialects in which a container may ask: which limits are its own, and how they are read. To add a
// dialect: a file that reads it, a row here, its rows in testing/dialect_rows.h.
#pragma once

#include <optional>
#include <span>

#include "fronts/pod/container_reader.h"

namespace carve::fronts {

struct DialectRow {
  Dialect dialect;
  std::span<const char* const> limits;  // Its keys.
  // Returns what the container asks for; no value: nothing, or an error.
  std::optional<ContainerRequest> (*read)(ContainerReader&);
};

// In the order in which a sentence names them.
std::span<const DialectRow> dialect_rows();

// Returns the dialect of the container's limits, or none. Two of them in one container are an error.
const DialectRow* dialect_of(ContainerReader&);

// Refuses limits that begin with our prefix and are none of ours.
void refuse_unknown_limits(ContainerReader&);

// What the annotations of ours say about the slices of a pod, whichever dialect its limits have.
void read_slice_annotations(ContainerReader&, ContainerRequest&);

std::optional<ContainerRequest> read_carve(ContainerReader&);
std::optional<ContainerRequest> read_ack(ContainerReader&);
std::optional<ContainerRequest> read_vke(ContainerReader&);
std::optional<ContainerRequest> read_hami(ContainerReader&);
std::optional<ContainerRequest> read_nvidia(ContainerReader&);

// Elastic containers run on machines that are not ours.
inline constexpr std::string_view elastic_sentence =
    "elastic containers (VCI) do not support mGPU: only node (ECS) deployments do";

}  // namespace carve::fronts
