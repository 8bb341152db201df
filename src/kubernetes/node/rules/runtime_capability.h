// The container runtime's capabilities, and how it names its containers: the text parts of its responses.
//
// A runtime without CDI silently drops a CDI device (containerd 1.6), so a container would start without its
// slice. For such a runtime the plugin's response has mounts and device nodes instead. They are those of the
// whole node, so only the guest library narrows them, and the node is reported as degraded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace carve::kubernetes::node {

// The responses of Version and of Status(verbose).
struct RuntimeFacts {
  std::string name;     // "containerd", "cri-o"
  std::string version;  // "v2.4.2", "1.6.20~ds1"
  std::string config;   // containerd's info["config"], a JSON document. Empty if absent.
};

struct RuntimeCapability {
  bool is_known = true;
  bool has_cdi = false;
  std::string message;  // Why there is no CDI, and how to get it. Empty if there is.

  friend bool operator==(const RuntimeCapability&, const RuntimeCapability&) = default;
};

// containerd reports enableCDI in its configuration from 1.7 on. If absent, CDI is on in 2.0 and newer, and
// in CRI-O from 1.23 on.
RuntimeCapability capability_of(const RuntimeFacts&);

// The labels that kubelet gives to containers (k8s.io/kubelet/pkg/types, labels.go).
inline constexpr const char* pod_uid_label = "io.kubernetes.pod.uid";
inline constexpr const char* container_name_label = "io.kubernetes.container.name";

// A container as returned by ListContainers.
struct RuntimeContainer {
  std::string id;
  std::map<std::string, std::string> labels;
};

// Returns the pid of the container's first process, from info["info"] of ContainerStatus(verbose), or no
// value if the text has none.
std::optional<uint32_t> pid_of(std::string_view info);

// Returns whether a process with this /proc/PID/mountinfo has the attach directory of the slot
// (".../attach/s017") at /run/carve, which proves that the runtime has used the CDI file. Kernel
// documentation, proc(5), mountinfo.
bool has_attach_directory(std::string_view mountinfo, std::string_view slot);
// The same for info["info"] of ContainerStatus(verbose): its runtimeSpec lists the mounts, including those of
// CDI.
bool mounts_attach_directory(std::string_view info, std::string_view slot);

}  // namespace carve::kubernetes::node
