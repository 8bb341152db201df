// kubelet and a container runtime for tests: their sockets, in one folder. Like kubelet it removes all plugin
// sockets when it starts, dials back to registering plugins, and rejects too frequent calls of pod resources.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kubernetes/node/rules/container_start.h"
#include "kubernetes/node/rules/runtime_capability.h"

namespace carve::kubernetes::node {

class KubeletFake {
 public:
  struct Registration {
    std::string version, endpoint, resource;
    bool calls_before_start = false, asks_for_preferences = false;
  };
  struct Allocated {
    std::vector<std::string> cdi_devices;
    std::vector<std::string> mounts;   // "HOST:CONTAINER:ro"
    std::vector<std::string> devices;  // The host's.
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
  // Returns the first list that ListAndWatch sent over a stream that stays open; empty if no plugin responds.
  std::vector<std::string> devices();
  bool is_stream_open() const;
  Result<Allocated, std::string> allocate(const std::vector<std::string>& slots);
  Result<std::vector<std::string>, std::string> prefer(const std::vector<std::string>& available,
                                                       const std::vector<std::string>& must_include,
                                                       int size);
  // Waits for the response; kubelet waits 30 s.
  Result<void, std::string> start_container(const std::vector<std::string>& slots, int patience_seconds = 30);

  void set_resources(std::vector<ContainerDevices>);
  void refuse_resources(unsigned times);  // As if beyond the rate limit.
  void set_runtime(RuntimeFacts);
  void set_containers(std::vector<Container>);  // The running ones.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace carve::kubernetes::node
