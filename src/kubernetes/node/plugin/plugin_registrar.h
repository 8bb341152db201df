// Keeps the device plugin registered. When kubelet starts, it removes all plugin sockets and knows no plugin.
// The plugin therefore serves and registers again whenever kubelet's socket has changed, or its own is gone
// (inotify(7) on the folder). It has its own thread, because registering waits for kubelet.
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
  ~PluginRegistrar();  // Ends the plugin; kubelet then counts 0 slots.
  PluginRegistrar(const PluginRegistrar&) = delete;
  PluginRegistrar& operator=(const PluginRegistrar&) = delete;

 private:
  // Identifies a file; ino 0 means that there is none. A new socket may reuse the inode of the previous one,
  // so its time counts too.
  struct File {
    uint64_t device = 0, inode = 0;
    int64_t changed_ns = 0;
    friend bool operator==(const File&, const File&) = default;
  };
  static File file_at(const std::string& path);

  void run();
  void step();  // Serves and registers unless that is done.
  void wait();  // Until a file in the folder changes, a retry is due, or the end.
  bool is_current() const;

  const std::string folder_;
  const PluginHandlers handlers_;
  const os::Wakeup stop_;
  os::Fd changes_;  // inotify; not open while the folder does not exist.
  std::unique_ptr<DevicePlugin> plugin_;
  File kubelet_, own_;  // As they were at the registration.
  bool is_registered_ = false;
  int wait_ms_ = 0;  // Until the next attempt.
  std::string last_problem_;
  std::thread thread_;  // Last, because it uses the others.
};

}  // namespace carve::kubernetes::node
