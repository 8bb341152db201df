#include "kubernetes/node/dra/dra_plugin.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include <dra_health.grpc.pb.h>
#include <dra_plugin.grpc.pb.h>
#include <plugin_registration.grpc.pb.h>

namespace carve::kubernetes::node {
namespace {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::system_clock;

constexpr milliseconds stream_check{500};  // How often a stream checks whether kubelet is gone.
constexpr seconds health_period{10};       // kubelet shows a state older than 30 s as Unknown.
constexpr size_t max_claims_of_a_call = 256;

template <class Request>
std::vector<ClaimName> claims_of(const Request& request) {
  std::vector<ClaimName> out;
  for (const dra::Claim& claim : request.claims())
    out.push_back({.name_space = claim.namespace_(), .name = claim.name(), .uid = claim.uid()});
  return out;
}

grpc::Status too_many() {
  return {grpc::StatusCode::INVALID_ARGUMENT,
          fmt::format("at most {} claims are possible in one call", max_claims_of_a_call)};
}

class PluginService final : public dra::DRAPlugin::Service {
 public:
  explicit PluginService(const DraHandlers& handlers) : handlers_(handlers) {}

 private:
  grpc::Status NodePrepareResources(grpc::ServerContext* context,
                                    const dra::NodePrepareResourcesRequest* request,
                                    dra::NodePrepareResourcesResponse* answer) override {
    const std::vector<ClaimName> claims = claims_of(*request);
    if (claims.size() > max_claims_of_a_call) return too_many();
    const auto results = handlers_.prepare(claims, [context] { return context->IsCancelled(); });
    for (size_t i = 0; i < claims.size(); ++i) {
      dra::NodePrepareResourceResponse& response = (*answer->mutable_claims())[claims[i].uid];
      if (!results[i]) {
        response.set_error(results[i].error());
        continue;
      }
      for (const PreparedDevice& device : *results[i]) {
        dra::Device* const added = response.add_devices();
        added->add_request_names(device.request);
        added->set_pool_name(device.pool);
        added->set_device_name(device.device);
        if (!device.cdi_device.empty()) added->add_cdi_device_ids(device.cdi_device);
        if (!device.share_id.empty()) added->set_share_id(device.share_id);
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status NodeUnprepareResources(grpc::ServerContext*, const dra::NodeUnprepareResourcesRequest* request,
                                      dra::NodeUnprepareResourcesResponse* answer) override {
    const std::vector<ClaimName> claims = claims_of(*request);
    if (claims.size() > max_claims_of_a_call) return too_many();
    const auto results = handlers_.unprepare(claims);
    for (size_t i = 0; i < claims.size(); ++i) {
      dra::NodeUnprepareResourceResponse& response = (*answer->mutable_claims())[claims[i].uid];
      if (!results[i]) response.set_error(results[i].error());
    }
    return grpc::Status::OK;
  }

  const DraHandlers& handlers_;
};

class HealthService final : public v1alpha1::DRAResourceHealth::Service {
 public:
  void set(std::vector<DeviceCondition> devices) {
    const std::lock_guard lock(mutex_);
    if (has_devices_ && devices_ == devices) return;
    devices_ = std::move(devices);
    has_devices_ = true;
    ++version_;
    changed_.notify_all();
  }
  // Ends the streams, so that the server can be shut down.
  void end() {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }

 private:
  grpc::Status NodeWatchResources(grpc::ServerContext* context, const v1alpha1::NodeWatchResourcesRequest*,
                                  grpc::ServerWriter<v1alpha1::NodeWatchResourcesResponse>* writer) override {
    std::unique_lock lock(mutex_);
    uint64_t sent = 0;
    auto due = std::chrono::steady_clock::now();
    while (!context->IsCancelled() && !ends_) {
      const auto now = std::chrono::steady_clock::now();
      if (!has_devices_ || (sent == version_ && now < due)) {
        changed_.wait_for(lock, stream_check);
        continue;
      }
      sent = version_;
      due = now + health_period;
      const v1alpha1::NodeWatchResourcesResponse state = response();
      lock.unlock();
      const bool is_open = writer->Write(state);
      lock.lock();
      if (!is_open) break;
    }
    return grpc::Status::OK;
  }

  v1alpha1::NodeWatchResourcesResponse response() const {
    v1alpha1::NodeWatchResourcesResponse out;
    const int64_t now = system_clock::to_time_t(system_clock::now());
    for (const DeviceCondition& device : devices_) {
      v1alpha1::DeviceHealth* const added = out.add_devices();
      added->mutable_device()->set_pool_name(device.pool);
      added->mutable_device()->set_device_name(device.device);
      added->set_health(device.is_healthy ? v1alpha1::HEALTHY : v1alpha1::UNHEALTHY);
      added->set_last_updated_time(now);
      added->set_message(device.message);
    }
    return out;
  }

  // Not an os::Mutex, because gRPC's headers define macros with the names of its annotations.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<DeviceCondition> devices_;
  bool has_devices_ = false, ends_ = false;
  uint64_t version_ = 0;
};

class RegistrationService final : public pluginregistration::Registration::Service {
 public:
  RegistrationService(const DraHandlers& handlers, std::string endpoint)
      : handlers_(handlers), endpoint_(std::move(endpoint)) {}

 private:
  grpc::Status GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                       pluginregistration::PluginInfo* info) override {
    info->set_type("DRAPlugin");
    info->set_name(dra_driver);
    info->set_endpoint(endpoint_);
    for (const char* version : {"v1.DRAPlugin", "v1alpha1.DRAResourceHealth"})
      info->add_supported_versions(version);
    handlers_.asked();
    return grpc::Status::OK;
  }
  grpc::Status NotifyRegistrationStatus(grpc::ServerContext*,
                                        const pluginregistration::RegistrationStatus* status,
                                        pluginregistration::RegistrationStatusResponse*) override {
    handlers_.registered(status->plugin_registered() ? ""
                         : status->error().empty()   ? "kubelet gives no reason"
                                                     : status->error());
    return grpc::Status::OK;
  }

  const DraHandlers& handlers_;
  const std::string endpoint_;
};

class Plugin final : public DraPlugin {
 public:
  Plugin(const DraSockets& sockets, const DraHandlers& handlers)
      : handlers_(handlers), plugin_(handlers_), registration_(handlers_, sockets.plugin) {}
  ~Plugin() override {
    health_.end();
    const auto now = system_clock::now();
    if (registration_server_) registration_server_->Shutdown(now + milliseconds(200));
    if (plugin_server_) plugin_server_->Shutdown(now + milliseconds(200));
  }

  Outcome<void> begin(const DraSockets& sockets) {
    if (mkdir(sockets.folder.c_str(), 0755) != 0 && errno != EEXIST)
      return failure(FailureKind::unavailable,
                     "cannot create {}: {}; set kubelet's folder with --kubelet-dir", sockets.folder,
                     strerror(errno));
    plugin_server_ = serve(sockets.plugin, {&plugin_, &health_});
    if (!plugin_server_) return failure(FailureKind::unavailable, "cannot serve {}", sockets.plugin);
    registration_server_ = serve(sockets.registration, {&registration_});
    if (!registration_server_)
      return failure(FailureKind::unavailable, "cannot serve {}", sockets.registration);
    return {};
  }

  void set_health(std::vector<DeviceCondition> devices) override { health_.set(std::move(devices)); }

 private:
  static std::unique_ptr<grpc::Server> serve(const std::string& path,
                                             std::initializer_list<grpc::Service*> services) {
    unlink(path.c_str());
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
    for (grpc::Service* service : services) builder.RegisterService(service);
    return builder.BuildAndStart();
  }

  const DraHandlers handlers_;
  PluginService plugin_;
  HealthService health_;
  RegistrationService registration_;
  std::unique_ptr<grpc::Server> plugin_server_, registration_server_;
};

}  // namespace

Outcome<std::unique_ptr<DraPlugin>> DraPlugin::serve(const DraSockets& sockets, const DraHandlers& handlers) {
  auto plugin = std::make_unique<Plugin>(sockets, handlers);
  if (const auto begun = plugin->begin(sockets); !begun) return tl::unexpected(begun.error());
  return plugin;
}

}  // namespace carve::kubernetes::node
