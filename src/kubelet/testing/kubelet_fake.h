// kubelet and a container runtime for tests: their sockets, in one folder. Like kubelet it removes all
// sockets of plugins when it starts, dials back to what registers, and refuses pod resources that are asked
// for too often.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kubelet/rules/container_start.h"
#include "kubelet/rules/runtime_capability.h"

namespace carve::kubelet {

class KubeletFake {
 public:
  struct Registration {
    std::string version, endpoint, resource;
    bool calls_before_start = false, asks_for_preferences = false;
  };
  struct Allocated {
    std::vector<std::string> cdi_devices;
    std::vector<std::string> mounts;   // "HOST:CONTAINER:ro"
    std::vector<std::string> devices;  // Of the host.
    std::vector<std::pair<std::string, std::string>> environment;
  };
  struct Container {
    RuntimeContainer container;
    uint32_t pid = 0;
  };

  // The sockets: kubelet.sock, pod-resources.sock and runtime.sock.
  explicit KubeletFake(std::string folder);
  ~KubeletFake();
  KubeletFake(const KubeletFake&) = delete;
  KubeletFake& operator=(const KubeletFake&) = delete;

  void start();
  void stop();
  std::string pod_resources_socket() const;
  std::string runtime_socket() const;

  // Since the last start.
  std::vector<Registration> registrations() const;
  // What ListAndWatch has sent first, over a stream that stays open; empty: no plugin answers.
  std::vector<std::string> devices();
  bool is_stream_open() const;
  Result<Allocated, std::string> allocate(const std::vector<std::string>& slots);
  Result<std::vector<std::string>, std::string> prefer(const std::vector<std::string>& available,
                                                       const std::vector<std::string>& must_include,
                                                       int size);
  // Waits for the answer; kubelet does so for 30 s.
  Result<void, std::string> start_container(const std::vector<std::string>& slots, int patience_seconds = 30);

  void set_resources(std::vector<ContainerDevices>);
  void refuse_resources(unsigned times);  // As beyond the rate limit.
  void set_runtime(RuntimeFacts);
  void set_containers(std::vector<Container>);  // That run.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace carve::kubelet
