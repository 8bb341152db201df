#include "kubernetes/node/plugin/device_plugin.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <semaphore>

#include <device_plugin.grpc.pb.h>
#include "core/request.h"
#include "kubernetes/node/rules/container_start.h"
#include "kubernetes/node/rules/slot_choice.h"

namespace carve::kubernetes::node {
namespace {

using std::chrono::milliseconds;

constexpr ptrdiff_t max_streams = 64;      // Woken together; others end at their next check.
constexpr milliseconds stream_check{500};  // How often a stream checks whether kubelet is gone.
constexpr milliseconds register_patience{2000};
constexpr const char* api_version = "v1beta1";
constexpr const char* no_whole_devices = "NVIDIA_VISIBLE_DEVICES";

template <class List>
std::vector<std::string> texts(const List& list) {
  return {list.begin(), list.end()};
}

grpc::Status refused(const std::string& message) { return {grpc::StatusCode::FAILED_PRECONDITION, message}; }

void set_options(v1beta1::DevicePluginOptions* options) {
  options->set_pre_start_required(true);
  options->set_get_preferred_allocation_available(true);
}

void add_files(const api::SlotFiles& files, v1beta1::ContainerAllocateResponse* response) {
  for (const api::ContainerMount& mount : files.mounts) {
    v1beta1::Mount* const added = response->add_mounts();
    added->set_host_path(mount.host_path);
    added->set_container_path(mount.container_path);
    added->set_read_only(!mount.writable);
  }
  for (const std::string& node : files.device_nodes) {
    v1beta1::DeviceSpec* const added = response->add_devices();
    added->set_host_path(node);
    added->set_container_path(node);
    added->set_permissions("rw");
  }
  // The guest library takes the numbers as those of the slice's devices and stops after the last one
  // (guest/context/visible_devices.h). Thus the driver counts only the slice's devices, whichever they are.
  std::string numbers = "0";
  for (unsigned number = 1; number < max_slice_devices; ++number) numbers += fmt::format(",{}", number);
  (*response->mutable_envs())["CUDA_VISIBLE_DEVICES"] = numbers;
}

class Service final : public v1beta1::DevicePlugin::Service {
 public:
  explicit Service(PluginHandlers handlers) : handlers_(std::move(handlers)) {}

  // Ends the streams, so that the server can be shut down.
  void end() {
    ends_ = true;
    ended_.release(max_streams);
  }

 private:
  grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* answer) override {
    set_options(answer);
    return grpc::Status::OK;
  }

  // The list never changes, so it is sent only once. When the stream ends, kubelet knows that the plugin is
  // gone.
  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    v1beta1::ListAndWatchResponse list;
    for (const std::string& slot : all_slots()) {
      v1beta1::Device* const device = list.add_devices();
      device->set_id(slot);
      device->set_health("Healthy");
    }
    writer->Write(list);
    while (!context->IsCancelled() && !ends_) ended_.try_acquire_for(stream_check);
    return grpc::Status::OK;
  }

  grpc::Status GetPreferredAllocation(grpc::ServerContext*,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* answer) override {
    for (const auto& container : request->container_requests()) {
      auto* const preferred = answer->add_container_responses();
      const size_t size = static_cast<size_t>(std::max(container.allocation_size(), 0));
      for (const std::string& slot : handlers_.prefer(texts(container.available_deviceids()),
                                                      texts(container.must_include_deviceids()), size))
        preferred->add_deviceids(slot);
    }
    return grpc::Status::OK;
  }

  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* answer) override {
    for (const auto& container : request->container_requests()) {
      auto* const response = answer->add_container_responses();
      for (const std::string& name : container.devices_ids()) {
        const auto slot = parse_container_slot(name);
        if (!slot) return refused(fmt::format("there is no slot '{}'", name.substr(0, 80)));
        const auto files = handlers_.allocated(*slot);
        if (!files) return refused(files.error().message);
        if (*files)
          add_files(**files, response);
        else
          response->add_cdi_devices()->set_name(fmt::format("{}={}", slot_resource, name));
      }
      (*response->mutable_envs())[no_whole_devices] = "void";
    }
    return grpc::Status::OK;
  }

  grpc::Status PreStartContainer(grpc::ServerContext* context,
                                 const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse*) override {
    if (request->devices_ids_size() != 1)
      return refused(fmt::format("the container has {} slots; {} must be 1 for each container with a slice",
                                 request->devices_ids_size(), slot_resource));
    const auto slot = parse_container_slot(request->devices_ids(0));
    if (!slot) return refused(fmt::format("there is no slot '{}'", request->devices_ids(0).substr(0, 80)));
    const auto started = handlers_.starting(*slot, [context] { return context->IsCancelled(); });
    return started ? grpc::Status::OK : refused(started.error().message);
  }

  const PluginHandlers handlers_;
  // Not an os::Mutex, because gRPC's headers define macros with the names of its annotations.
  std::atomic<bool> ends_ = false;
  std::counting_semaphore<> ended_{0};
};

class Plugin final : public DevicePlugin {
 public:
  explicit Plugin(const PluginHandlers& handlers) : service_(handlers) {}
  ~Plugin() override {
    if (!server_) return;
    service_.end();
    server_->Shutdown(std::chrono::system_clock::now() + milliseconds(200));
  }

  bool begin(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    return server_ != nullptr;
  }

 private:
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Outcome<std::unique_ptr<DevicePlugin>> DevicePlugin::serve(const std::string& folder,
                                                           const PluginHandlers& handlers) {
  auto plugin = std::make_unique<Plugin>(handlers);
  const std::string path = folder + "/" + plugin_socket_name;
  if (!plugin->begin("unix:" + path))
    return failure(FailureKind::unavailable,
                   "cannot serve the device plugin at {}; set kubelet's folder with --plugin-dir", path);
  return plugin;
}

Outcome<void> register_plugin(const std::string& folder) {
  const std::string path = folder + "/" + kubelet_socket_name;
  const auto stub =
      v1beta1::Registration::NewStub(grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials()));
  v1beta1::RegisterRequest request;
  request.set_version(api_version);
  request.set_endpoint(plugin_socket_name);
  request.set_resource_name(slot_resource);
  set_options(request.mutable_options());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + register_patience);
  v1beta1::Empty answer;
  const grpc::Status status = stub->Register(&context, request, &answer);
  if (!status.ok())
    return failure(FailureKind::unavailable, "kubelet at {} did not register {}: {}", path, slot_resource,
                   status.error_message());
  return {};
}

}  // namespace carve::kubernetes::node
