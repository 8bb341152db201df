// The container runtime's capabilities and container names, parsed from its responses.
//
// A runtime without CDI silently drops a CDI device (containerd 1.6), so a container would start without its
// slice. For such a runtime the plugin's response contains mounts and device nodes instead. The device nodes
// are those of the whole node, so only the guest library restricts the container to its devices, and the node
// is reported as degraded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace carve::kubernetes::node {

// The responses to Version and Status(verbose).
struct RuntimeFacts {
  std::string name;     // "containerd", "cri-o"
  std::string version;  // "v2.4.2", "1.6.20~ds1"
  std::string config;   // containerd's info["config"], a JSON document. Empty if absent.
};

struct RuntimeCapability {
  bool is_known = true;
  bool has_cdi = false;
  std::string message;  // Why CDI is missing and how to get it; empty if it works.

  friend bool operator==(const RuntimeCapability&, const RuntimeCapability&) = default;
};

// containerd 1.7 and newer reports enableCDI in its configuration. Otherwise CDI is on in containerd 2.0 and
// newer and in CRI-O 1.23 and newer.
RuntimeCapability capability_of(const RuntimeFacts&);

// The labels that kubelet sets on containers (k8s.io/kubelet/pkg/types, labels.go).
inline constexpr const char* pod_namespace_label = "io.kubernetes.pod.namespace";
inline constexpr const char* pod_name_label = "io.kubernetes.pod.name";
inline constexpr const char* pod_uid_label = "io.kubernetes.pod.uid";
inline constexpr const char* container_name_label = "io.kubernetes.container.name";

// A container as returned by ListContainers.
struct RuntimeContainer {
  std::string id;
  std::map<std::string, std::string> labels;
};

// Returns the pid of the container's first process, from info["info"] of ContainerStatus(verbose), or no
// value if it is missing.
std::optional<uint32_t> pid_of(std::string_view info);

// Returns whether a process with this /proc/PID/mountinfo has the slot's attach directory (".../attach/s017")
// mounted at /run/carve, which proves that the runtime has used the CDI file. Format: proc(5), mountinfo.
bool has_attach_directory(std::string_view mountinfo, std::string_view slot);
// Like has_attach_directory(), but for info["info"] of ContainerStatus(verbose), whose runtimeSpec lists the
// mounts, including those from CDI.
bool mounts_attach_directory(std::string_view info, std::string_view slot);
// Returns the name of the attach point ("s017", "c-UID") whose directory the container has mounted; empty if none.
std::string mounted_attach_point(std::string_view info);

}  // namespace carve::kubernetes::node
