// Keeps the device plugin registered. A kubelet that starts removes all sockets of plugins and knows none, so
// the plugin serves and registers again whenever kubelet's socket is another one, or its own is gone
// (inotify(7) on the folder). A thread of its own, because registering waits for kubelet.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "kubelet/plugin/device_plugin.h"
#include "os/fd.h"

namespace carve::kubelet {

class PluginRegistrar {
 public:
  PluginRegistrar(std::string folder, PluginHandlers handlers);
  ~PluginRegistrar();  // The plugin is gone then; kubelet counts 0 slots.
  PluginRegistrar(const PluginRegistrar&) = delete;
  PluginRegistrar& operator=(const PluginRegistrar&) = delete;

 private:
  // Which file a path is; ino 0: there is none. A new socket may get the inode of the one before, so its time
  // counts.
  struct File {
    uint64_t device = 0, inode = 0;
    int64_t changed_ns = 0;
    friend bool operator==(const File&, const File&) = default;
  };
  static File file_at(const std::string& path);

  void run();
  void step();  // Serves and registers if that is not so.
  void wait();  // Until a file of the folder changes, or it is time to try again, or the end.
  bool is_current() const;

  const std::string folder_;
  const PluginHandlers handlers_;
  const os::Fd stop_;
  os::Fd changes_;  // inotify; none: the folder does not exist yet.
  std::unique_ptr<DevicePlugin> plugin_;
  File kubelet_, own_;  // As they were when it was registered.
  bool is_registered_ = false;
  int wait_ms_ = 0;  // Until it is tried again.
  std::string last_problem_;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace carve::kubelet
