// Services of PAI-EAS: the JSON document of its console and client to an objects::Service.
//
//   | document                              | result                                                    |
//   |---------------------------------------|-----------------------------------------------------------|
//   | metadata.gpu_memory n                 | n GB (10^9) on instance types ml*, n GiB on all others    |
//   | ... with gpu_core_percentage p        | share p % of one device, policy fixed-share               |
//   | ... without it                        | a best-effort slice                                       |
//   | gpu_core_percentage alone             | ignored, with a warning; no GPU                           |
//   | metadata.gpu 1 or more                | whole devices; the two fields above are ignored           |
//   | metadata.instance, .resource          | replicas (default 1), pool                                |
//   | metadata.cpu (cores), .memory (MB)    | request and limit                                         |
//   | metadata.rolling_strategy.max_surge, .max_unavailable | update; a number, or a percentage of instance |
//   | metadata.eas.termination_grace_period | seconds from SIGTERM to SIGKILL                           |
//   | containers[0].image, .env, .port      | image, variables, port                                    |
//   | containers[0].command, .script        | a line for /bin/sh -c                                     |
//   | all others                            | no effect; a warning names the field                      |
//
// The instance type is cloud.computing.instances[0].type, cloud.computing.instance_type, or that of the
// pool's nodes. Keys with a dot ("eas.termination_grace_period") are read as nested objects are. A percentage
// of instances is rounded up for max_surge and down for max_unavailable.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/api/json.h"
#include "wire/objects/service_object.h"

namespace carve::fronts {

// The annotation with the name as the document has it; metadata.name is the same in lower case, with `-` for
// `_`.
inline constexpr const char* eas_name_annotation = "eas.carve.dev/name";

inline constexpr uint32_t max_eas_instances = 64;

// What the document does not say: the nodes of the pool that metadata.resource names.
struct EasContext {
  std::vector<std::string> pool_instance_types;  // Of the nodes with GPUs.
  std::optional<uint64_t> largest_usable_bytes;  // Of one device; absent: not known, and not checked.
};

struct EasService {
  objects::Service service;
  std::vector<std::string> warnings;
};

// Returns the service that the document describes, with the document in spec.source, or every error of the
// document.
Result<EasService, api::FieldErrors> from_eas(std::string_view json, const EasContext&);

// Returns whether the document is one of PAI-EAS: a JSON object that names no apiVersion and no kind.
bool is_eas(std::string_view json);

// Returns metadata.resource of the document, which is the pool whose nodes the context describes; empty:
// there is none, or the text is not JSON.
std::string eas_pool(std::string_view json);

// Returns the document with each "metadata.instance=2" set at its path; absent objects on the path are added.
// A value that is a number, true, false, null, an object, a list or a text in quotes is set as such, another
// one as a text.
Result<std::string, api::FieldErrors> modified(std::string_view json, std::span<const std::string> overrides);

}  // namespace carve::fronts
