#include "kubernetes/node/runtime/container_runtime.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>

#include <container_runtime.grpc.pb.h>

namespace carve::kubernetes::node {
namespace {

constexpr std::chrono::seconds patience{2};
constexpr int max_answer_bytes = 16 << 20;  // The limit of kubelet's own client.

namespace cri = ::runtime::v1;

class Client final : public ContainerRuntime {
 public:
  explicit Client(const std::string& socket) : socket_(socket) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(max_answer_bytes);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    stub_ = cri::RuntimeService::NewStub(
        grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
  }

  Result<RuntimeFacts, std::string> facts() override {
    cri::VersionResponse version;
    if (const auto problem = call(&cri::RuntimeService::Stub::Version, cri::VersionRequest(), version))
      return tl::unexpected(*problem);
    cri::StatusRequest request;
    request.set_verbose(true);
    cri::StatusResponse status;
    if (const auto problem = call(&cri::RuntimeService::Stub::Status, request, status))
      return tl::unexpected(*problem);
    RuntimeFacts out{.name = version.runtime_name(), .version = version.runtime_version(), .config = ""};
    if (const auto config = status.info().find("config"); config != status.info().end())
      out.config = config->second;
    return out;
  }

  Result<std::vector<RuntimeContainer>, std::string> running() override {
    cri::ListContainersRequest request;
    request.mutable_filter()->mutable_state()->set_state(cri::CONTAINER_RUNNING);
    cri::ListContainersResponse answer;
    if (const auto problem = call(&cri::RuntimeService::Stub::ListContainers, request, answer))
      return tl::unexpected(*problem);
    std::vector<RuntimeContainer> out;
    for (const cri::Container& container : answer.containers())
      out.push_back({.id = container.id(), .labels = {container.labels().begin(), container.labels().end()}});
    return out;
  }

  Result<std::string, std::string> info(const std::string& id) override {
    cri::ContainerStatusRequest request;
    request.set_container_id(id);
    request.set_verbose(true);
    cri::ContainerStatusResponse answer;
    if (const auto problem = call(&cri::RuntimeService::Stub::ContainerStatus, request, answer))
      return tl::unexpected(*problem);
    const auto found = answer.info().find("info");
    return found == answer.info().end() ? "" : found->second;
  }

 private:
  template <class Method, class Request, class Answer>
  std::optional<std::string> call(Method method, const Request& request, Answer& answer) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + patience);
    const grpc::Status status = (stub_.get()->*method)(&context, request, &answer);
    if (status.ok()) return std::nullopt;
    return fmt::format("a call to the container runtime at {} failed: {}", socket_,
                       status.error_message().substr(0, 300));
  }

  const std::string socket_;
  std::unique_ptr<cri::RuntimeService::Stub> stub_;
};

}  // namespace

std::unique_ptr<ContainerRuntime> ContainerRuntime::at(const std::string& socket) {
  return std::make_unique<Client>(socket);
}

}  // namespace carve::kubernetes::node
