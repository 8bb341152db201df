// PAI-EAS services: translates the JSON document of its console and client to an objects::Service.
//
//   | document                              | result                                                    |
//   |---------------------------------------|-----------------------------------------------------------|
//   | metadata.gpu_memory n                 | n GB (10^9) on instance types ml*, n GiB on all others    |
//   | ... with gpu_core_percentage p        | share p % of one device, policy fixed-share               |
//   | ... without it                        | a best-effort slice                                       |
//   | only gpu_core_percentage              | ignored, with a warning; no GPU                           |
//   | metadata.gpu 1 or more                | whole devices; the two fields above are ignored           |
//   | metadata.instance, .resource          | replicas (default 1), pool                                |
//   | metadata.cpu (cores), .memory (MB)    | request and limit                                         |
//   | metadata.rolling_strategy.max_surge, .max_unavailable | update; a number, or a percentage of instance |
//   | metadata.eas.termination_grace_period | seconds from SIGTERM to SIGKILL                           |
//   | containers[0].image, .env, .port      | image, variables, port                                    |
//   | containers[0].command, .script        | a line for /bin/sh -c                                     |
//   | autoscaler.min, .max, .strategies     | autoscale, by qps, concurrency or gpu                     |
//   | all others                            | no effect; a warning names the field                      |
//
// The instance type is cloud.computing.instances[0].type, cloud.computing.instance_type, or that of the
// pool's nodes. A pool of another kind of nodes is rejected. Keys with dots ("cloud.computing.instance_type"
// at the top, "eas.termination_grace_period" in metadata) are equivalent to nested objects. A percentage of
// instances is rounded up for max_surge and down for max_unavailable.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "objects/service_object.h"
#include "wire/api/json.h"

namespace carve::dialects {

// The annotation that holds the document's original name. metadata.name is the same name in lower case, with
// `-` for `_`.
inline constexpr const char* eas_name_annotation = "eas.carve.dev/name";

inline constexpr uint32_t max_eas_instances = 64;

// Context that is not in the document: the nodes of the pool named by metadata.resource.
struct EasContext {
  std::vector<std::string> pool_instance_types;  // Types of the nodes with GPUs.
  std::optional<uint64_t>
      largest_usable_bytes;  // Largest usable memory of one device; if absent, not checked.
};

struct EasService {
  objects::Service service;
  std::vector<std::string> warnings;
};

// Returns the service that the document describes, with the document itself in spec.source. Fails with every
// error.
Result<EasService, api::FieldErrors> from_eas(std::string_view json, const EasContext&);

// Returns whether the document is from PAI-EAS: a JSON object without apiVersion and kind.
bool is_eas(std::string_view json);

// Returns metadata.resource of the document, which is the pool whose nodes form the context. Empty if it is
// missing or if the text is not JSON.
std::string eas_pool(std::string_view json);

// Returns the name in the document. Empty if it is missing or if the text is not JSON.
std::string eas_name(std::string_view json);

// Returns whether the document describes a whole service. A document without a name is a fragment. So is a
// document without containers, even with the service's name, because there is nothing to run.
bool is_whole_eas(std::string_view json);

// Merges the fragment into the document: objects are merged, null removes a member, and any other value
// replaces it (RFC 7396), like PAI's UpdateService.
Result<std::string, api::FieldErrors> merged(std::string_view json, std::string_view fragment);

// Applies changes such as "metadata.instance=2" to the document. Missing objects on a path are added. A
// number, true, false, null, an object, a list or a quoted text is set as such, and anything else as a text.
Result<std::string, api::FieldErrors> modified(std::string_view json, std::span<const std::string> overrides);

}  // namespace carve::dialects
