// The device plugin of carve.dev/slot (k8s.io/kubelet, deviceplugin v1beta1): 256 slots on each node, which
// never change and are always healthy. kubelet gives one to each container with a slice and calls the plugin
// before each start of the container.
//
// The response to Allocate is the same for every container, because kubelet stores it and replays it after a
// restart: the CDI device of the slot, and NVIDIA_VISIBLE_DEVICES=void, since an image's own `all` would make
// NVIDIA's runtime add every device. For a runtime without CDI, the response contains the mounts and the
// node's devices instead of the CDI device.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/container_slot.h"
#include "core/failure.h"
#include "wire/api/slice.h"

namespace carve::kubernetes::node {

// Callbacks of the plugin. All are called concurrently in gRPC's threads.
struct PluginHandlers {
  // Chooses `size` of the available slots, including the required ones.
  std::function<std::vector<std::string>(const std::vector<std::string>& available,
                                         const std::vector<std::string>& must_include, size_t size)>
      prefer;
  // Called when a container gets the slot, before its pod is known. Returns the slot's files if the runtime
  // has no CDI.
  std::function<Outcome<std::optional<api::SlotFiles>>(ContainerSlot)> allocated;
  // Called when the slot's container is about to start. On failure the message appears in the pod's status,
  // and kubelet calls again. `is_over` returns whether kubelet has stopped waiting.
  std::function<Outcome<void>(ContainerSlot, const std::function<bool()>& is_over)> starting;
};

inline constexpr const char* plugin_socket_name = "carve.dev-slot.sock";
inline constexpr const char* kubelet_socket_name = "kubelet.sock";

class DevicePlugin {
 public:
  // Serves in kubelet's directory for plugins. Fails if the socket cannot be created there.
  static Outcome<std::unique_ptr<DevicePlugin>> serve(const std::string& folder, const PluginHandlers&);
  virtual ~DevicePlugin() = default;
};

// Registers the plugin with the kubelet of this directory. kubelet connects back, so the plugin must already
// be serving.
Outcome<void> register_plugin(const std::string& folder);

}  // namespace carve::kubernetes::node
