// What the container runtime can do, and how it names its containers: the parts of its answers that are
// texts.
//
// // A runtime without CDI drops a CDI device without a word (containerd 1.6), so a container would start
// without its slice. There the plugin's answer has mounts and device nodes instead: those of the whole node,
// so the guest library alone narrows them, and the node says that it is degraded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace carve::kubelet {

// The answers of Version and of Status(verbose).
struct RuntimeFacts {
  std::string name;     // "containerd", "cri-o"
  std::string version;  // "v2.4.2", "1.6.20~ds1"
  std::string config;   // containerd's info["config"], a JSON document; empty: it has none.
};

struct RuntimeCapability {
  bool is_known = true;
  bool has_cdi = false;
  std::string sentence;  // Why there is no CDI, and the way out; empty if there is.

  friend bool operator==(const RuntimeCapability&, const RuntimeCapability&) = default;
};

// containerd says enableCDI in its configuration (1.7 and newer). Without that, 2.0 and newer have it on, and
// so has CRI-O from 1.23 on.
RuntimeCapability capability_of(const RuntimeFacts&);

// The labels that kubelet gives to containers (k8s.io/kubelet/pkg/types, labels.go).
inline constexpr const char* pod_uid_label = "io.kubernetes.pod.uid";
inline constexpr const char* container_name_label = "io.kubernetes.container.name";

// A container as ListContainers has it.
struct RuntimeContainer {
  std::string id;
  std::map<std::string, std::string> labels;
};

// Returns the pid of the container's first process, from info["info"] of ContainerStatus(verbose); no value:
// the text has none.
std::optional<uint32_t> pid_of(std::string_view info);

// Returns whether a process with this /proc/PID/mountinfo has, at /run/carve, the attach directory of the
// slot
// (".../attach/s017"): that the runtime has acted on the CDI file. Kernel documentation, proc(5), mountinfo.
bool has_attach_directory(std::string_view mountinfo, std::string_view slot);
// The same of info["info"] of ContainerStatus(verbose): its runtimeSpec names the mounts, those of CDI too.
bool mounts_attach_directory(std::string_view info, std::string_view slot);

}  // namespace carve::kubelet
