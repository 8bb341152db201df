#include "kubernetes/node/plugin/plugin_registrar.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <algorithm>

#include "os/log.h"

namespace carve::kubernetes::node {
namespace {

constexpr int first_wait_ms = 100, max_wait_ms = 3000;
// Limits the time until a change is found that inotify did not report.
constexpr int check_ms = 5000;

}  // namespace

PluginRegistrar::PluginRegistrar(std::string folder, PluginHandlers handlers)
    : folder_(std::move(folder)), handlers_(std::move(handlers)), thread_([this] { run(); }) {}

PluginRegistrar::~PluginRegistrar() {
  stop_.set();
  thread_.join();
}

PluginRegistrar::File PluginRegistrar::file_at(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return {};
  return {.device = found.st_dev,
          .inode = found.st_ino,
          .changed_ns = found.st_ctim.tv_sec * 1'000'000'000 + found.st_ctim.tv_nsec};
}

bool PluginRegistrar::is_current() const {
  return is_registered_ && file_at(folder_ + "/" + kubelet_socket_name) == kubelet_ &&
         file_at(folder_ + "/" + plugin_socket_name) == own_;
}

void PluginRegistrar::step() {
  if (!changes_) {
    os::Fd fresh(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (fresh && inotify_add_watch(fresh.get(), folder_.c_str(), IN_CREATE | IN_DELETE | IN_MOVED_TO) >= 0)
      changes_ = std::move(fresh);
  }
  if (is_current()) return;
  if (is_registered_) os::log::info("kubelet or the plugin's socket is gone; registering again");
  is_registered_ = false;
  const File kubelet = file_at(folder_ + "/" + kubelet_socket_name);
  std::string problem;
  if (kubelet.inode == 0) {
    problem = "kubelet is not running at " + folder_;
  } else if (own_.inode == 0 || file_at(folder_ + "/" + plugin_socket_name) != own_) {
    plugin_.reset();
    auto plugin = DevicePlugin::serve(folder_, handlers_);
    if (plugin)
      plugin_ = std::move(*plugin);
    else
      problem = plugin.error().message;
    own_ = file_at(folder_ + "/" + plugin_socket_name);
  }
  if (problem.empty())
    if (const auto registered = register_plugin(folder_); !registered) problem = registered.error().message;
  if (problem.empty()) {
    is_registered_ = true;
    kubelet_ = kubelet;
    wait_ms_ = 0;
    last_problem_.clear();
    os::log::info("device plugin registered with kubelet at {}", folder_);
    return;
  }
  if (problem != last_problem_) os::log::warning("{}", problem);
  last_problem_ = problem;
  wait_ms_ = std::clamp(wait_ms_ * 2, first_wait_ms, max_wait_ms);
}

void PluginRegistrar::wait() {
  pollfd descriptors[] = {{stop_.fd(), POLLIN, 0}, {changes_.get(), POLLIN, 0}};
  poll(descriptors, 2, is_registered_ ? check_ms : wait_ms_);
  alignas(inotify_event) char events[4096];
  while (changes_ && read(changes_.get(), events, sizeof events) > 0) {}
}

void PluginRegistrar::run() {
  while (!stop_.take()) {
    step();
    wait();
  }
}

}  // namespace carve::kubernetes::node
