#include "dialects/pod/guards.h"
#include "dialects/pod/pod_json.h"

#include <algorithm>
#include <filesystem>

namespace carve::dialects {
namespace {

using api::Json;

constexpr const char* own_scheduler = "carve-scheduler";
constexpr const char* container_lists[] = {"containers", "initContainers", "ephemeralContainers"};

// Directories that give a container access beyond its slice. /var/run is /run.
constexpr std::string_view protected_paths[] = {
    "/run/carve", "/var/run/carve", "/var/lib/carve", "/etc/cdi", "/run/cdi", "/var/run/cdi", "/dev"};

bool is_true(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_boolean() && object[key].get<bool>();
}

// Calls the function for each item of the member that is an object.
template <class F>
void each_object(const Json& of, const char* key, F&& call) {
  if (!of.is_object() || !of.contains(key) || !of[key].is_array()) return;
  for (const Json& item : of[key])
    if (item.is_object()) call(item);
}

bool is_below(std::string_view folder, std::string_view path) {
  return folder == "/" || path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

void check_scheduling(const Json& spec, const PodSettings& settings, objects::ErrorList& errors) {
  if (const std::string node = text_member(spec, "nodeName"); !node.empty())
    errors.add("spec.nodeName", node, "Carve's scheduler chooses the node; use nodeSelector");
  const std::string scheduler = text_member(spec, "schedulerName");
  if (!scheduler.empty() && scheduler != default_scheduler &&
      std::ranges::find(settings.schedulers, scheduler) == settings.schedulers.end())
    errors.add("spec.schedulerName", scheduler, "{} does not use Carve; leave it out, or use {}",
               objects::typed(scheduler),
               settings.schedulers.empty() ? own_scheduler : settings.schedulers.front());
  if (spec.contains("nodeSelector"))
    if (const std::string bookkeeper = text_member(spec["nodeSelector"], "carve.dev/node");
        !bookkeeper.empty() && bookkeeper != "extender")
      errors.add("spec.nodeSelector", bookkeeper,
                 "carve.dev/node {}: slices requested with limits run on nodes with carve.dev/node=extender",
                 objects::typed(bookkeeper));
  const std::string runtime = text_member(spec, "runtimeClassName");
  if (!runtime.empty() &&
      std::ranges::find(settings.runtime_classes, runtime) == settings.runtime_classes.end())
    errors.add("spec.runtimeClassName", runtime,
               "{} is not in runtimeClasses of ConfigMap carve-settings; add it there",
               objects::typed(runtime));
}

// Two schedulers that allocate claims do not see each other's allocations in time and allocate the same
// devices twice (measured: 10 of 10 devices). Therefore Carve's scheduler does not allocate claims.
void check_claims(const Json& spec, const PodSettings& settings, objects::ErrorList& errors) {
  if (!spec.contains("resourceClaims") || !spec["resourceClaims"].is_array() ||
      spec["resourceClaims"].empty())
    return;
  std::string scheduler = text_member(spec, "schedulerName");
  if (scheduler.empty() || scheduler == default_scheduler)
    scheduler = settings.schedulers.empty() ? own_scheduler : settings.schedulers.front();
  if (scheduler == default_scheduler) return;
  errors.add("spec.resourceClaims", "",
             "scheduler {}, which places pods with slices, does not allocate resource claims; move the "
             "claims to a pod "
             "without a slice, or run the coordinator next to the cluster's scheduler",
             scheduler);
}

void check_host(const Json& spec, objects::ErrorList& errors) {
  for (const char* key : {"hostPID", "hostIPC"})
    if (is_true(spec, key))
      errors.add(std::string("spec.") + key, "true",
                 "a pod with a slice must not share the host's namespaces; remove the field");
  each_object(spec, "volumes", [&](const Json& volume) {
    if (!volume.contains("hostPath")) return;
    const std::string given = text_member(volume["hostPath"], "path");
    std::string path = std::filesystem::path("/" + given).lexically_normal().string();
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    for (const std::string_view kept : protected_paths)
      if (is_below(path, kept) || is_below(kept, path))
        return errors.add("spec.volumes." + text_member(volume, "name"), given,
                          "hostPath {} overlaps {}, which gives access beyond the pod's slice; remove it",
                          objects::typed(given), kept);
  });
}

void check_containers(const Json& spec, objects::ErrorList& errors) {
  for (const char* list : container_lists)
    each_object(spec, list, [&](const Json& container) {
      const std::string at = fmt::format("container {}", text_member(container, "name"));
      if (container.contains("securityContext") && is_true(container["securityContext"], "privileged"))
        errors.add(at, "privileged",
                   "a privileged container can access every device; leave out 'privileged'");
      each_object(container, "env", [&](const Json& variable) {
        if (text_member(variable, "name") == "NVIDIA_VISIBLE_DEVICES")
          errors.add(at, "NVIDIA_VISIBLE_DEVICES",
                     "env NVIDIA_VISIBLE_DEVICES overrides the devices of the slice; remove it");
      });
    });
}

}  // namespace

void check_guards(const Json& pod_spec, const PodSettings& settings, objects::ErrorList& errors) {
  check_scheduling(pod_spec, settings, errors);
  check_claims(pod_spec, settings, errors);
  check_host(pod_spec, errors);
  check_containers(pod_spec, errors);
}

}  // namespace carve::dialects
