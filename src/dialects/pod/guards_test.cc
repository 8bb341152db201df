#include "dialects/pod/guards.h"

#include <gmock/gmock.h>

#include "yaml/documents.h"

namespace carve::dialects {
namespace {

std::string first_error(const std::string& spec_as_yaml, const PodSettings& settings = {}) {
  const auto documents = yaml::documents_of("spec: {" + spec_as_yaml + "}");
  if (!documents) return "not YAML: " + spec_as_yaml;
  const auto json = api::parse(documents->front());
  objects::ErrorList errors;
  check_guards((*json)["spec"], settings, errors);
  return errors.empty() ? "" : errors.all().front().message;
}

TEST(Guards, each_guard_has_its_message) {
  const std::pair<const char*, const char*> rows[] = {
      {"nodeName: n1", "spec.nodeName: Carve's scheduler chooses the node; use nodeSelector"},
      {"schedulerName: other",
       "spec.schedulerName: 'other' does not use Carve; leave it out, or use carve-scheduler"},
      {"nodeSelector: {carve.dev/node: dra}",
       "spec.nodeSelector: carve.dev/node 'dra': slices requested with limits"},
      {"runtimeClassName: gvisor",
       "spec.runtimeClassName: 'gvisor' is not in runtimeClasses of ConfigMap carve-settings; add it there"},
      {"resourceClaims: [{name: nic, resourceClaimName: x}]",
       "spec.resourceClaims: scheduler carve-scheduler, which places pods with slices, does not allocate "
       "resource "
       "claims; move the claims"},
      {"resourceClaims: [{name: nic, resourceClaimTemplateName: x}], schedulerName: default-scheduler",
       "spec.resourceClaims: scheduler carve-scheduler, which places pods"},
      {"hostPID: true",
       "spec.hostPID: a pod with a slice must not share the host's namespaces; remove the field"},
      {"hostIPC: true",
       "spec.hostIPC: a pod with a slice must not share the host's namespaces; remove the field"},
      {"volumes: [{name: v, hostPath: {path: /run/carve/attach}}]",
       "spec.volumes.v: hostPath '/run/carve/attach' overlaps /run/carve, which gives access beyond the "
       "pod's slice"},
      {"containers: [{name: c, securityContext: {privileged: true}}]",
       "container c: a privileged container can access every device; leave out 'privileged'"},
      {"initContainers: [{name: i, securityContext: {privileged: true}}]", "container i: a privileged"},
      {"containers: [{name: c, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]",
       "container c: env NVIDIA_VISIBLE_DEVICES overrides the devices of the slice; remove it"}};
  for (const auto& [spec, message] : rows)
    EXPECT_THAT(first_error(spec), ::testing::StartsWith(message)) << spec;
}

TEST(Guards, reject_all_spellings_of_a_path) {
  for (const char* path : {"/", "/dev", "/dev/", "/dev/nvidia0", "//dev", "/run", "/run/../run/carve", "/var",
                           "/var/run/cdi/x", "/etc", "/etc/./cdi", "dev", "", "/var/lib", "/x/../dev"})
    EXPECT_NE(first_error(fmt::format("volumes: [{{name: v, hostPath: {{path: '{}'}}}}]", path)), "") << path;
  for (const char* path : {"/data", "/device", "/run/other", "/var/lib/carved", "/etc/cdi2", "/home/dev"})
    EXPECT_EQ(first_error(fmt::format("volumes: [{{name: v, hostPath: {{path: '{}'}}}}]", path)), "") << path;
}

TEST(Guards, allow_harmless_settings) {
  EXPECT_EQ(first_error("schedulerName: default-scheduler, volumes: [{name: v, emptyDir: {}}], containers: "
                        "[{name: c, securityContext: {privileged: false}, env: [{name: A}]}]"),
            "");
  PodSettings settings;
  settings.schedulers = {"carve-scheduler", "batch"};
  settings.runtime_classes = {"nvidia"};
  EXPECT_EQ(first_error("schedulerName: batch, runtimeClassName: nvidia", settings), "");
  EXPECT_EQ(first_error("resourceClaims: []"), "");
  settings.schedulers = {"default-scheduler"};
  EXPECT_EQ(first_error("resourceClaims: [{name: nic, resourceClaimName: x}]", settings), "")
      << "there is only one scheduler";
}

TEST(Guards, members_of_other_types_are_ignored) {
  EXPECT_EQ(first_error("hostPID: 1, volumes: {a: 1}, containers: [1, {name: 2, env: 5}], nodeName: 7"), "");
}

}  // namespace
}  // namespace carve::dialects
