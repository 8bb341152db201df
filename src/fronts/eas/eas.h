// PAI-EAS service documents (JSON) as services. The document is kept byte for byte in spec.source; a field
// that has no effect here becomes a warning.
//
//   metadata.gpu_memory n           n GB (10^9 bytes) on instance types ml.*, n GiB on any other or none
//   metadata.gpu_core_percentage p  a share of p %, fixed-share; it needs gpu_memory
//   metadata.gpu n                  n whole devices; gpu_memory and gpu_core_percentage are ignored
//   metadata.instance               replicas, 1 to 64, default 1
//   metadata.cpu, metadata.memory   cores, and MB (10^6 bytes): requests
//
// The names are those of Alibaba Cloud's documentation of EAS service parameters.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/api/field_error.h"
#include "wire/objects/service.h"

namespace carve::fronts {

inline constexpr const char* eas_name_annotation = "eas.carve.dev/name";

// What the controller knows of the nodes that the service may get.
struct EasContext {
  std::vector<std::string> pool_instance_types;  // Of the pool's GPU nodes.
  std::optional<uint64_t> largest_usable_bytes;  // Of one device; absent: no device is known.
};

struct EasService {
  objects::Service service;
  std::vector<std::string> warnings;
};

// Returns the service, or all errors of the document.
Result<EasService, api::FieldErrors> from_eas(std::string_view json, const EasContext&);

// Returns the document with changes such as "metadata.instance=2" (eascmd modify -D): the value at the path
// is set, as a number if it is a whole one. Fails for a word without `=` and for a path through a value that
// is no object.
Result<std::string, std::string> modified(std::string_view json, const std::vector<std::string>& changes);

}  // namespace carve::fronts
