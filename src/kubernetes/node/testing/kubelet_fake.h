// kubelet and a container runtime for tests, with their sockets in one folder. Like the real kubelet, it
// removes all plugin sockets when it starts, connects back to registering plugins, and rejects too frequent
// calls for pod resources.
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
    std::vector<std::string> devices;  // Device nodes of the host.
    std::vector<std::pair<std::string, std::string>> environment;
  };
  struct Container {
    RuntimeContainer container;
    uint32_t pid = 0;
  };

  // Creates the sockets kubelet.sock, pod-resources.sock and runtime.sock.
  explicit KubeletFake(std::string folder);
  ~KubeletFake();
  KubeletFake(const KubeletFake&) = delete;
  KubeletFake& operator=(const KubeletFake&) = delete;

  void start();
  void stop();
  std::string pod_resources_socket() const;
  std::string runtime_socket() const;

  // Returns the registrations since the last start.
  std::vector<Registration> registrations() const;
  // Returns the first list that ListAndWatch sent over a stream that is still open. Empty if no plugin
  // responds.
  std::vector<std::string> devices();
  bool is_stream_open() const;
  Result<Allocated, std::string> allocate(const std::vector<std::string>& slots);
  Result<std::vector<std::string>, std::string> prefer(const std::vector<std::string>& available,
                                                       const std::vector<std::string>& must_include,
                                                       int size);
  // Waits for the response, for up to 30 s like kubelet.
  Result<void, std::string> start_container(const std::vector<std::string>& slots, int patience_seconds = 30);

  void set_resources(std::vector<ContainerDevices>);
  void refuse_resources(unsigned times);  // As if the rate limit were exceeded.
  void set_runtime(RuntimeFacts);
  void set_containers(std::vector<Container>);  // Sets the running containers.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace carve::kubernetes::node
