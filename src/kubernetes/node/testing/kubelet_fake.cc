#include "kubernetes/node/testing/kubelet_fake.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>

#include <container_runtime.grpc.pb.h>
#include <device_plugin.grpc.pb.h>
#include <pod_resources.grpc.pb.h>
#include "kubernetes/node/plugin/device_plugin.h"

namespace carve::kubernetes::node {
namespace {

namespace cri = ::runtime::v1;
using std::chrono::seconds;
using std::chrono::system_clock;

std::vector<std::string> texts(const auto& list) { return {list.begin(), list.end()}; }

}  // namespace

struct KubeletFake::State final : v1beta1::Registration::Service {
  explicit State(std::string path)
      : folder(std::move(path)), resources_service(*this), runtime_service(*this) {}

  grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty*) override {
    const std::lock_guard lock(mutex);
    registrations.push_back(
        {.version = request->version(),
         .endpoint = request->endpoint(),
         .resource = request->resource_name(),
         .calls_before_start = request->options().pre_start_required(),
         .asks_for_preferences = request->options().get_preferred_allocation_available()});
    return grpc::Status::OK;
  }

  struct Resources final : v1::PodResourcesLister::Service {
    explicit Resources(State& all) : state(all) {}
    grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                      v1::ListPodResourcesResponse* answer) override {
      const std::lock_guard lock(state.mutex);
      if (state.refusals > 0) {
        --state.refusals;
        return {grpc::StatusCode::RESOURCE_EXHAUSTED, "rejected by rate limit"};
      }
      for (const ContainerDevices& devices : state.resources) {
        v1::PodResources* const pod = answer->add_pod_resources();
        pod->set_namespace_(devices.container.name_space);
        pod->set_name(devices.container.pod);
        v1::ContainerResources* const container = pod->add_containers();
        container->set_name(devices.container.container);
        v1::ContainerDevices* const added = container->add_devices();
        added->set_resource_name(devices.resource);
        for (const std::string& id : devices.devices) added->add_device_ids(id);
      }
      return grpc::Status::OK;
    }
    State& state;
  };

  struct Runtime final : cri::RuntimeService::Service {
    explicit Runtime(State& all) : state(all) {}
    grpc::Status Version(grpc::ServerContext*, const cri::VersionRequest*,
                         cri::VersionResponse* answer) override {
      const std::lock_guard lock(state.mutex);
      answer->set_runtime_name(state.facts.name);
      answer->set_runtime_version(state.facts.version);
      return grpc::Status::OK;
    }
    grpc::Status Status(grpc::ServerContext*, const cri::StatusRequest* request,
                        cri::StatusResponse* answer) override {
      const std::lock_guard lock(state.mutex);
      if (request->verbose()) (*answer->mutable_info())["config"] = state.facts.config;
      return grpc::Status::OK;
    }
    grpc::Status ListContainers(grpc::ServerContext*, const cri::ListContainersRequest*,
                                cri::ListContainersResponse* answer) override {
      const std::lock_guard lock(state.mutex);
      for (const Container& running : state.containers) {
        cri::Container* const added = answer->add_containers();
        added->set_id(running.container.id);
        added->set_state(cri::CONTAINER_RUNNING);
        for (const auto& [key, value] : running.container.labels) (*added->mutable_labels())[key] = value;
      }
      return grpc::Status::OK;
    }
    grpc::Status ContainerStatus(grpc::ServerContext*, const cri::ContainerStatusRequest* request,
                                 cri::ContainerStatusResponse* answer) override {
      const std::lock_guard lock(state.mutex);
      for (const Container& running : state.containers)
        if (running.container.id == request->container_id() && request->verbose())
          (*answer->mutable_info())["info"] = fmt::format(R"({{"pid":{}}})", running.pid);
      return grpc::Status::OK;
    }
    State& state;
  };

  std::string socket(const char* name) const { return folder + "/" + name; }
  std::shared_ptr<grpc::Channel> plugin() const {
    return grpc::CreateChannel("unix:" + socket(plugin_socket_name), grpc::InsecureChannelCredentials());
  }
  void serve(const char* name, grpc::Service& service) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket(name), grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    servers.push_back(builder.BuildAndStart());
  }
  void end_stream() {
    if (stream) stream->TryCancel();
    if (reader.joinable()) reader.join();
    stream.reset();
    is_open = false;
  }

  const std::string folder;
  mutable std::mutex mutex;
  std::vector<Registration> registrations;
  std::vector<ContainerDevices> resources;
  unsigned refusals = 0;
  RuntimeFacts facts{.name = "containerd", .version = "v2.4.2", .config = R"({"enableCDI":true})"};
  std::vector<Container> containers;
  Resources resources_service;
  Runtime runtime_service;
  std::vector<std::unique_ptr<grpc::Server>> servers;
  std::unique_ptr<grpc::ClientContext> stream;
  std::thread reader;
  std::atomic<bool> is_open = false;
};

KubeletFake::KubeletFake(std::string folder) : state_(std::make_unique<State>(std::move(folder))) {}
KubeletFake::~KubeletFake() { stop(); }

std::string KubeletFake::pod_resources_socket() const { return state_->socket("pod-resources.sock"); }
std::string KubeletFake::runtime_socket() const { return state_->socket("runtime.sock"); }

void KubeletFake::start() {
  for (const auto& file : std::filesystem::directory_iterator(state_->folder))
    if (file.is_socket()) std::filesystem::remove(file);
  {
    const std::lock_guard lock(state_->mutex);
    state_->registrations.clear();
  }
  state_->serve("pod-resources.sock", state_->resources_service);
  state_->serve("runtime.sock", state_->runtime_service);
  state_->serve(kubelet_socket_name, *state_);
}

void KubeletFake::stop() {
  state_->end_stream();
  for (const auto& server : state_->servers) server->Shutdown(system_clock::now());
  state_->servers.clear();
}

std::vector<KubeletFake::Registration> KubeletFake::registrations() const {
  const std::lock_guard lock(state_->mutex);
  return state_->registrations;
}

std::vector<std::string> KubeletFake::devices() {
  state_->end_stream();
  state_->stream = std::make_unique<grpc::ClientContext>();
  const std::shared_ptr stub(v1beta1::DevicePlugin::NewStub(state_->plugin()));
  const std::shared_ptr reader(stub->ListAndWatch(state_->stream.get(), {}));
  v1beta1::ListAndWatchResponse list;
  if (!reader->Read(&list)) return {};
  state_->is_open = true;
  state_->reader = std::thread([this, stub, reader] {
    v1beta1::ListAndWatchResponse next;
    while (reader->Read(&next)) {}
    reader->Finish();
    state_->is_open = false;
  });
  std::vector<std::string> out;
  for (const v1beta1::Device& device : list.devices())
    if (device.health() == "Healthy") out.push_back(device.id());
  return out;
}

bool KubeletFake::is_stream_open() const { return state_->is_open; }

Result<KubeletFake::Allocated, std::string> KubeletFake::allocate(const std::vector<std::string>& slots) {
  v1beta1::AllocateRequest request;
  auto* const container = request.add_container_requests();
  for (const std::string& slot : slots) container->add_devices_ids(slot);
  grpc::ClientContext context;
  v1beta1::AllocateResponse answer;
  const auto status = v1beta1::DevicePlugin::NewStub(state_->plugin())->Allocate(&context, request, &answer);
  if (!status.ok()) return tl::unexpected(status.error_message());
  Allocated out;
  for (const auto& response : answer.container_responses()) {
    for (const auto& device : response.cdi_devices()) out.cdi_devices.push_back(device.name());
    for (const auto& mount : response.mounts())
      out.mounts.push_back(fmt::format("{}:{}:{}", mount.host_path(), mount.container_path(),
                                       mount.read_only() ? "ro" : "rw"));
    for (const auto& device : response.devices()) out.devices.push_back(device.host_path());
    for (const auto& [name, value] : response.envs()) out.environment.emplace_back(name, value);
  }
  return out;
}

Result<std::vector<std::string>, std::string> KubeletFake::prefer(
    const std::vector<std::string>& available, const std::vector<std::string>& must_include, int size) {
  v1beta1::PreferredAllocationRequest request;
  auto* const container = request.add_container_requests();
  for (const std::string& slot : available) container->add_available_deviceids(slot);
  for (const std::string& slot : must_include) container->add_must_include_deviceids(slot);
  container->set_allocation_size(size);
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse answer;
  const auto stub = v1beta1::DevicePlugin::NewStub(state_->plugin());
  const auto status = stub->GetPreferredAllocation(&context, request, &answer);
  if (!status.ok() || answer.container_responses_size() != 1) return tl::unexpected(status.error_message());
  return texts(answer.container_responses(0).deviceids());
}

Result<void, std::string> KubeletFake::start_container(const std::vector<std::string>& slots,
                                                       int patience_seconds) {
  v1beta1::PreStartContainerRequest request;
  for (const std::string& slot : slots) request.add_devices_ids(slot);
  grpc::ClientContext context;
  context.set_deadline(system_clock::now() + seconds(patience_seconds));
  v1beta1::PreStartContainerResponse answer;
  const auto stub = v1beta1::DevicePlugin::NewStub(state_->plugin());
  const auto status = stub->PreStartContainer(&context, request, &answer);
  if (!status.ok()) return tl::unexpected(status.error_message());
  return {};
}

void KubeletFake::set_resources(std::vector<ContainerDevices> resources) {
  const std::lock_guard lock(state_->mutex);
  state_->resources = std::move(resources);
}
void KubeletFake::refuse_resources(unsigned times) {
  const std::lock_guard lock(state_->mutex);
  state_->refusals = times;
}
void KubeletFake::set_runtime(RuntimeFacts facts) {
  const std::lock_guard lock(state_->mutex);
  state_->facts = std::move(facts);
}
void KubeletFake::set_containers(std::vector<Container> containers) {
  const std::lock_guard lock(state_->mutex);
  state_->containers = std::move(containers);
}

}  // namespace carve::kubernetes::node
