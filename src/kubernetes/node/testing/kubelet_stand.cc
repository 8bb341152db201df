// kubelet, a container runtime and an API server in one program, for tests of the real carve-kubelet with a
// real agent. It reads one command per line and prints a line of JSON for each:
//
//   folder PATH                  create the sockets in PATH and node n1; prints the API server's URL
//   pod NAME ANNOTATION          put a running pod a/NAME on the node with this carve.dev/slices ("-" means
//                                none); prints its uid
//   remove NAME                  remove the pod
//   devices NAME CONTAINER SLOT  give the slot to the container in pod resources; NAME "-" removes all
//   allocate SLOT                call Allocate; prints the plugin's response
//   start SLOT                   call PreStartContainer; prints null or the message
//   container ID UID NAME PID    add a running container
//   restart                      kill kubelet and start it again
//   registrations                print the number of registrations since kubelet's start
//   api off|on                   stop or resume responding as the API server
//   node, events                 print the node object, or the events' reasons and notes
#include <fmt/format.h>

#include <future>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "kubernetes/api/client/testing/api_server_socket.h"
#include "kubernetes/node/testing/kubelet_fake.h"
#include "os/loop.h"

namespace {

using namespace carve;
using namespace carve::kubernetes::node;
using nlohmann::json;

constexpr const char* pods = "/api/v1/pods";

// The API server, which runs in its own thread.
class ServedApi {
 public:
  ServedApi() : socket_(loop_, server_), thread_([this] { loop_.run(); }) {
    server_.put("/api/v1/nodes", {{"metadata", {{"name", "n1"}}}, {"status", json::object()}});
  }
  ~ServedApi() {
    loop_.post([this] { loop_.stop(); });
    thread_.join();
  }
  uint16_t port() const { return socket_.port(); }

  json with_server(const std::function<json(kubernetes::ApiServerFake&)>& act) {
    std::promise<json> done;
    loop_.post([&] { done.set_value(act(server_)); });
    return done.get_future().get();
  }

 private:
  os::Loop loop_;
  kubernetes::ApiServerFake server_;
  kubernetes::ApiServerSocket socket_;
  std::thread thread_;
};

class Stand {
 public:
  json act(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "folder") return begin(next(words));
    if (verb == "pod") return put_pod(words);
    if (verb == "remove") return remove_pod(next(words));
    if (verb == "devices") return set_devices(words);
    if (verb == "allocate") return allocate(next(words));
    if (verb == "start") return start(words);
    if (verb == "container") return add_container(words);
    if (verb == "restart") return restart();
    if (verb == "registrations") return kubelet_->registrations().size();
    if (verb == "api") return set_api(next(words));
    if (verb == "node")
      return api_.with_server(
          [](kubernetes::ApiServerFake& server) { return *server.find("/api/v1/nodes", "", "n1"); });
    if (verb == "events") return events();
    return "there is no command " + verb;
  }

 private:
  static std::string next(std::istringstream& words) {
    std::string out;
    words >> out;
    return out;
  }

  json begin(const std::string& folder) {
    kubelet_ = std::make_unique<KubeletFake>(folder);
    kubelet_->start();
    return fmt::format("http://127.0.0.1:{}", api_.port());
  }
  json put_pod(std::istringstream& words) {
    const std::string name = next(words);
    std::string annotation;
    std::getline(words >> std::ws, annotation);
    return api_.with_server([&](kubernetes::ApiServerFake& server) -> json {
      json pod = {{"metadata", {{"name", name}, {"namespace", "a"}}},
                  {"spec", {{"nodeName", "n1"}}},
                  {"status", {{"phase", "Running"}}}};
      if (annotation != "-") pod["metadata"]["annotations"]["carve.dev/slices"] = annotation;
      server.put(pods, pod);
      return (*server.find(pods, "a", name))["metadata"]["uid"];
    });
  }
  json remove_pod(const std::string& name) {
    return api_.with_server(
        [&](kubernetes::ApiServerFake& server) { return server.remove(pods, "a", name); });
  }
  json set_devices(std::istringstream& words) {
    const std::string pod = next(words), container = next(words), slot = next(words);
    if (pod == "-") devices_.clear();
    if (pod != "-") devices_.push_back({{"a", pod, container}, slot_resource, {slot}});
    kubelet_->set_resources(devices_);
    return nullptr;
  }
  json allocate(const std::string& slot) {
    const auto answer = kubelet_->allocate({slot});
    return answer ? json(answer->cdi_devices) : json(answer.error());
  }
  json start(std::istringstream& words) {
    const std::string slot = next(words);
    int seconds = 30;
    words >> seconds;
    const auto started = kubelet_->start_container({slot}, words ? seconds : 30);
    return started ? json() : json(started.error());
  }
  json add_container(std::istringstream& words) {
    KubeletFake::Container added;
    added.container.id = next(words);
    added.container.labels[pod_uid_label] = next(words);
    added.container.labels[container_name_label] = next(words);
    words >> added.pid;
    containers_.push_back(added);
    kubelet_->set_containers(containers_);
    return nullptr;
  }
  json restart() {
    kubelet_->stop();
    kubelet_->start();
    return nullptr;
  }
  json set_api(const std::string& word) {
    return api_.with_server([&](kubernetes::ApiServerFake& server) -> json {
      server.clear_faults();
      if (word == "off")
        server.add_fault({.kind = kubernetes::ApiFault::Kind::lose_request, .times = 1u << 30});
      if (word == "off") server.end_watches();
      return nullptr;
    });
  }
  json events() {
    return api_.with_server([](kubernetes::ApiServerFake& server) {
      json out = json::array();
      for (const json& event : server.all("/apis/events.k8s.io/v1/events"))
        out.push_back({event["reason"], event["note"]});
      return out;
    });
  }

  ServedApi api_;
  std::unique_ptr<KubeletFake> kubelet_;
  std::vector<ContainerDevices> devices_;
  std::vector<KubeletFake::Container> containers_;
};

}  // namespace

int main() {
  Stand stand;
  for (std::string line; std::getline(std::cin, line);) std::cout << stand.act(line).dump() << std::endl;
}
