// Keeps the device plugin registered. When kubelet starts, it removes all plugin sockets and has no
// registered plugins. Therefore the plugin serves and registers again whenever kubelet's socket has changed
// or its own socket is gone (inotify(7) on the directory). It runs in its own thread, because registering
// waits for kubelet.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "kubernetes/node/plugin/device_plugin.h"
#include "os/fd.h"
#include "os/wakeup.h"

namespace carve::kubernetes::node {

class PluginRegistrar {
 public:
  PluginRegistrar(std::string folder, PluginHandlers handlers);
  ~PluginRegistrar();  // Stops the plugin; kubelet then counts 0 slots.
  PluginRegistrar(const PluginRegistrar&) = delete;
  PluginRegistrar& operator=(const PluginRegistrar&) = delete;

 private:
  // Identifies a file; ino 0 means that it does not exist. The time is compared too, because a new socket may
  // reuse the inode of the previous one.
  struct File {
    uint64_t device = 0, inode = 0;
    int64_t changed_ns = 0;
    friend bool operator==(const File&, const File&) = default;
  };
  static File file_at(const std::string& path);

  void run();
  void step();  // Serves and registers unless already done.
  void wait();  // Until a file changes, a retry is due, or it must stop.
  bool is_current() const;

  const std::string folder_;
  const PluginHandlers handlers_;
  const os::Wakeup stop_;
  os::Fd changes_;  // inotify; not open while the folder does not exist.
  std::unique_ptr<DevicePlugin> plugin_;
  File kubelet_, own_;  // As they were at registration.
  bool is_registered_ = false;
  int wait_ms_ = 0;  // Time until the next attempt.
  std::string last_problem_;
  std::thread thread_;  // Declared last, because it uses the other members.
};

}  // namespace carve::kubernetes::node
