#include "kubernetes/node/podresources/pod_resources.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <set>

#include <pod_resources.grpc.pb.h>
#include "kubernetes/node/rules/resource_claim.h"

namespace carve::kubernetes::node {
namespace {

constexpr std::chrono::seconds patience{2};
// kubelet's own client has the same limit (k8s.io/kubernetes, pkg/kubelet/apis/podresources,
// defaultPodResourcesMaxSize).
constexpr int max_list_bytes = 16 << 20;

class Lister final : public PodResources {
 public:
  explicit Lister(const std::string& socket) : socket_(socket) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(max_list_bytes);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    stub_ = v1::PodResourcesLister::NewStub(
        grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
  }

  Result<std::vector<ContainerDevices>, std::string> list() override {
    const auto answer = ask();
    if (!answer) return tl::unexpected(answer.error());
    std::vector<ContainerDevices> out;
    for (const v1::PodResources& pod : answer->pod_resources())
      for (const v1::ContainerResources& container : pod.containers())
        for (const v1::ContainerDevices& devices : container.devices())
          out.push_back({.container = {pod.namespace_(), pod.name(), container.name()},
                         .resource = devices.resource_name(),
                         .devices = {devices.device_ids().begin(), devices.device_ids().end()}});
    return out;
  }

  Result<std::vector<ContainerClaims>, std::string> claims() override {
    const auto answer = ask();
    if (!answer) return tl::unexpected(answer.error());
    std::vector<ContainerClaims> out;
    for (const v1::PodResources& pod : answer->pod_resources())
      for (const v1::ContainerResources& container : pod.containers()) {
        std::set<std::string> claims;
        for (const v1::DynamicResource& claim : container.dynamic_resources())
          for (const v1::ClaimResource& resource : claim.claim_resources())
            if (resource.driver_name() == dra_driver)
              claims.insert(claim.claim_namespace() + "/" + claim.claim_name());
        if (!claims.empty())
          out.push_back({.container = {pod.namespace_(), pod.name(), container.name()},
                         .claims = {claims.begin(), claims.end()}});
      }
    return out;
  }

 private:
  Result<v1::ListPodResourcesResponse, std::string> ask() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + patience);
    v1::ListPodResourcesResponse answer;
    const grpc::Status status = stub_->List(&context, {}, &answer);
    if (!status.ok())
      return tl::unexpected(fmt::format("cannot read kubelet's pod resources at {}: {}", socket_,
                                        status.error_message().substr(0, 300)));
    return answer;
  }

  const std::string socket_;
  std::unique_ptr<v1::PodResourcesLister::Stub> stub_;
};

}  // namespace

std::unique_ptr<PodResources> PodResources::at(const std::string& socket) {
  return std::make_unique<Lister>(socket);
}

}  // namespace carve::kubernetes::node
