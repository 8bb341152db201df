#include "dialects/pod/unknown_requests.h"

#include <algorithm>
#include <set>

#include "dialects/json_reader.h"
#include "dialects/pod/dialects.h"
#include "dialects/pod/keys.h"
#include "dialects/pod/pod_json.h"

namespace carve::dialects {
namespace {

using api::Json;

// KAI Scheduler's and Run:ai's fractions of a device (their documents on GPU sharing).
constexpr std::string_view unknown_annotations[] = {"gpu-fraction", "gpu-memory", "gpu-fraction-num-devices",
                                                    "gpu-fraction-container-name"};
// HAMi's annotations that select devices. They accompany limits, but without limits they also request a
// device.
constexpr std::string_view choices[] = {keys::hami_use_type, keys::hami_no_type, keys::hami_use_uuid,
                                        keys::hami_no_uuid, keys::hami_mode};
// A cluster may have nodes with devices of other vendors, which are served by their own plugins.
constexpr std::string_view other_makers[] = {"amd.com/", "gpu.intel.com/"};

class Search {
 public:
  Search(const PodSettings& settings, objects::ErrorList& errors) : settings_(settings), errors_(errors) {}

  void look_at_resources(const Json& container, const std::string& at) {
    const Json* const resources = member(container, "resources");
    std::set<std::string> seen;
    for (const char* list : {"limits", "requests"}) {
      const Json* const amounts = resources == nullptr ? nullptr : member(*resources, list);
      if (amounts == nullptr || !amounts->is_object()) continue;
      for (const auto& [key, value] : amounts->items())
        if (is_refused(key) && seen.insert(key).second)
          refuse(fmt::format("{}.resources.{}.{}", at, list, shown_key(key)), value,
                 fmt::format("container {}: {}: {}", text_member(container, "name"), shown_key(key),
                             shown_json(value)));
    }
  }

  void look_at_annotations(const Json& annotations, const std::string& at, bool has_slice) {
    if (!annotations.is_object()) return;
    for (const auto& [key, value] : annotations.items()) {
      const std::string_view word = std::string_view(key).substr(key.rfind('/') + 1);
      if (std::ranges::find(unknown_annotations, word) != std::end(unknown_annotations) ||
          (!has_slice && std::ranges::find(choices, key) != std::end(choices)))
        refuse(fmt::format("{}.{}", at, shown_key(key)), value,
               fmt::format("annotation {}: {}", shown_key(key), shown_json(value)));
    }
  }

 private:
  static std::string shown_key(const std::string& key) { return key.substr(0, 80); }

  bool is_refused(const std::string& key) const {
    const bool is_of_other_maker =
        std::ranges::any_of(other_makers, [&](std::string_view maker) { return key.starts_with(maker); });
    return is_unknown_gpu_resource(key) && !(settings_.has_other_makers && is_of_other_maker);
  }

  void refuse(const std::string& field, const Json& value, const std::string& what) {
    errors_.add_message(field, shown_json(value),
                        fmt::format("{}: Carve does not support this GPU request; request a slice with "
                                    "the limits {} and {}, or start {} with {}",
                                    what, keys::memory, keys::compute,
                                    settings_.has_other_makers ? "carve-coordinator" : "carve-controller",
                                    allow_unknown_gpu_option));
  }

  const PodSettings& settings_;
  objects::ErrorList& errors_;
};

}  // namespace

bool is_unknown_gpu_resource(std::string_view resource) {
  if (resource.starts_with(keys::prefix)) return false;  // Carve's own unknown keys have another message.
  for (const DialectRow& row : dialect_rows())
    if (std::ranges::find(row.limits, resource) != row.limits.end()) return false;
  std::string name(resource);
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return name.find("gpu") != name.npos || name.find("cuda") != name.npos ||
         name.starts_with("nvidia.com/mig-");
}

void refuse_unknown_gpu_requests(const Json& pod, const std::string& at, bool has_slice,
                                 const PodSettings& settings, objects::ErrorList& errors) {
  if (settings.allows_unknown_gpu_requests) return;
  Search search(settings, errors);
  if (const Json* const metadata = member(pod, "metadata"))
    if (const Json* const annotations = member(*metadata, "annotations"))
      search.look_at_annotations(*annotations, at + "metadata.annotations", has_slice);
  const Json* const spec = member(pod, "spec");
  for (const char* list : {"containers", "initContainers"}) {
    const Json* const containers = spec == nullptr ? nullptr : member(*spec, list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (size_t i = 0; i < containers->size(); ++i)
      search.look_at_resources((*containers)[i], fmt::format("{}spec.{}[{}]", at, list, i));
  }
}

}  // namespace carve::dialects
