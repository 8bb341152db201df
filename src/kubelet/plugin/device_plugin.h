// The device plugin of carve.dev/slot (k8s.io/kubelet, deviceplugin v1beta1): 256 slots on each node, always
// the same and always healthy. kubelet gives each container with a slice one of them, and calls before each
// start of it.
//
// The answer to Allocate is the same for every container, because kubelet stores it and replays it after a
// restart: the CDI device of the slot, and NVIDIA_VISIBLE_DEVICES=void, since an image's own `all` would make
// NVIDIA's runtime add every device. With a runtime without CDI the answer has the mounts and the node's
// devices themselves.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/container_slot.h"
#include "core/failure.h"
#include "wire/api/slice.h"

namespace carve::kubelet {

// What the plugin asks its program. All are called in threads of gRPC, several at once.
struct PluginHandlers {
  // Returns `size` of the available slots, with those that must be in it.
  std::function<std::vector<std::string>(const std::vector<std::string>& available,
                                         const std::vector<std::string>& must_include, size_t size)>
      prefer;
  // A container gets the slot. Its pod is not known yet. Returns its files if the runtime has no CDI.
  std::function<Outcome<std::optional<api::SlotFiles>>(ContainerSlot)> allocated;
  // The slot's container is about to start. A failure's sentence is in the pod's status, and kubelet calls
  // again. `is_over`: kubelet does not wait any more.
  std::function<Outcome<void>(ContainerSlot, const std::function<bool()>& is_over)> starting;
};

inline constexpr const char* plugin_socket_name = "carve.dev-slot.sock";
inline constexpr const char* kubelet_socket_name = "kubelet.sock";

class DevicePlugin {
 public:
  // Serves in kubelet's folder for plugins. Fails if no socket can be made there.
  static Outcome<std::unique_ptr<DevicePlugin>> serve(const std::string& folder, const PluginHandlers&);
  virtual ~DevicePlugin() = default;
};

// Registers the plugin with the kubelet of this folder, which dials back. The plugin serves already.
Outcome<void> register_plugin(const std::string& folder);

}  // namespace carve::kubelet
