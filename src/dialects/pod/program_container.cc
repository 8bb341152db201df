#include "dialects/pod/program_container.h"

#include <algorithm>
#include <string>

#include "dialects/pod/dialects.h"
#include "dialects/pod/keys.h"
#include "dialects/pod/pod_json.h"
#include "dialects/pod/unknown_requests.h"
#include "kubernetes/format/quantity.h"

namespace carve::dialects {
namespace {

using api::Json;

bool is_of_gpu(const std::string& resource) {
  if (resource.starts_with(keys::prefix) || is_unknown_gpu_resource(resource)) return true;
  return std::ranges::any_of(dialect_rows(), [&](const DialectRow& row) {
    return std::ranges::find(row.limits, resource) != row.limits.end();
  });
}

bool requests_gpu(const Json& container) {
  const Json* const resources = member(container, "resources");
  for (const char* list : {"limits", "requests"}) {
    const Json* const amounts = resources == nullptr ? nullptr : member(*resources, list);
    if (amounts == nullptr || !amounts->is_object()) continue;
    for (const auto& [key, value] : amounts->items())
      if (is_of_gpu(key) &&
          kubernetes::parse_quantity(value.is_string() ? value.get<std::string>() : value.dump()) != 0)
        return true;
  }
  return false;
}

}  // namespace

std::vector<size_t> containers_with_gpu(const Json& pod_spec, const char* list) {
  std::vector<size_t> out;
  const Json* const containers = member(pod_spec, list);
  if (containers == nullptr || !containers->is_array()) return out;
  for (size_t i = 0; i < containers->size(); ++i)
    if (requests_gpu((*containers)[i])) out.push_back(i);
  return out;
}

size_t program_container(const Json& pod_spec) {
  const std::vector<size_t> found = containers_with_gpu(pod_spec, "containers");
  return found.empty() ? 0 : found.front();
}

}  // namespace carve::dialects
