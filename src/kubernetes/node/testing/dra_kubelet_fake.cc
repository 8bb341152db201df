#include "kubernetes/node/testing/dra_kubelet_fake.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>

#include <dra_health.grpc.pb.h>
#include <dra_plugin.grpc.pb.h>
#include <plugin_registration.grpc.pb.h>

namespace carve::kubernetes::node {
namespace {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;
using std::chrono::seconds;
using std::chrono::system_clock;

void add_claims(const std::vector<ClaimName>& names, auto& request) {
  for (const ClaimName& name : names) {
    dra::Claim* const claim = request.add_claims();
    claim->set_namespace_(name.name_space);
    claim->set_name(name.name);
    claim->set_uid(name.uid);
  }
}

}  // namespace

struct DraKubeletFake::State {
  explicit State(std::string path) : folder(std::move(path)) {}

  std::shared_ptr<grpc::Channel> channel(const std::string& path) const {
    return grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials());
  }
  void end_stream() {
    if (stream) stream->TryCancel();
    if (reader.joinable()) reader.join();
    stream.reset();
  }

  const std::string folder;
  std::string endpoint;
  mutable std::mutex mutex;
  std::vector<DeviceCondition> health;
  size_t messages = 0;
  std::unique_ptr<grpc::ClientContext> stream;
  std::thread reader;
};

DraKubeletFake::DraKubeletFake(std::string folder) : state_(std::make_unique<State>(std::move(folder))) {
  for (const char* name : {"/plugins", "/plugins_registry"})
    std::filesystem::create_directories(state_->folder + name);
}
DraKubeletFake::~DraKubeletFake() { state_->end_stream(); }

Result<DraKubeletFake::Info, std::string> DraKubeletFake::register_driver(
    const std::set<std::string>& known) {
  const auto stub = pluginregistration::Registration::NewStub(
      state_->channel(state_->folder + "/plugins_registry/carve.dev-reg.sock"));
  pluginregistration::PluginInfo info;
  grpc::ClientContext asking;
  asking.set_deadline(system_clock::now() + seconds(5));
  if (const auto status = stub->GetInfo(&asking, {}, &info); !status.ok())
    return tl::unexpected(status.error_message());
  const bool is_known = std::ranges::any_of(
      info.supported_versions(), [&](const std::string& version) { return known.contains(version); });
  pluginregistration::RegistrationStatus result;
  result.set_plugin_registered(is_known);
  if (!is_known) result.set_error("none of the supported gRPC services is known");
  grpc::ClientContext telling;
  telling.set_deadline(system_clock::now() + seconds(5));
  pluginregistration::RegistrationStatusResponse answer;
  stub->NotifyRegistrationStatus(&telling, result, &answer);
  if (!is_known) return tl::unexpected(result.error());
  state_->endpoint = info.endpoint();
  return Info{.type = info.type(),
              .name = info.name(),
              .endpoint = info.endpoint(),
              .versions = {info.supported_versions().begin(), info.supported_versions().end()}};
}

Result<DraKubeletFake::Prepared, std::string> DraKubeletFake::prepare(const std::vector<ClaimName>& claims,
                                                                      int patience_seconds) {
  dra::NodePrepareResourcesRequest request;
  add_claims(claims, request);
  grpc::ClientContext context;
  context.set_deadline(system_clock::now() + seconds(patience_seconds));
  dra::NodePrepareResourcesResponse answer;
  const auto stub = dra::DRAPlugin::NewStub(state_->channel(state_->endpoint));
  const auto status = stub->NodePrepareResources(&context, request, &answer);
  if (!status.ok()) return tl::unexpected(status.error_message());
  Prepared out;
  for (const ClaimName& claim : claims) {
    const auto found = answer.claims().find(claim.uid);
    if (found == answer.claims().end()) return tl::unexpected("no result for claim " + claim.uid);
    if (!found->second.error().empty()) {
      out.push_back(tl::unexpected(found->second.error()));
      continue;
    }
    std::vector<PreparedDevice> devices;
    for (const dra::Device& device : found->second.devices())
      devices.push_back({.request = device.request_names(0),
                         .pool = device.pool_name(),
                         .device = device.device_name(),
                         .share_id = device.share_id(),
                         .cdi_device = device.cdi_device_ids_size() == 0 ? "" : device.cdi_device_ids(0)});
    out.push_back(std::move(devices));
  }
  return out;
}

Result<std::vector<std::string>, std::string> DraKubeletFake::unprepare(
    const std::vector<ClaimName>& claims) {
  dra::NodeUnprepareResourcesRequest request;
  add_claims(claims, request);
  grpc::ClientContext context;
  context.set_deadline(system_clock::now() + seconds(45));
  dra::NodeUnprepareResourcesResponse answer;
  const auto stub = dra::DRAPlugin::NewStub(state_->channel(state_->endpoint));
  const auto status = stub->NodeUnprepareResources(&context, request, &answer);
  if (!status.ok()) return tl::unexpected(status.error_message());
  std::vector<std::string> out;
  for (const ClaimName& claim : claims) {
    const auto found = answer.claims().find(claim.uid);
    out.push_back(found == answer.claims().end() ? "no result" : found->second.error());
  }
  return out;
}

void DraKubeletFake::watch_health() {
  state_->end_stream();
  state_->stream = std::make_unique<grpc::ClientContext>();
  const std::shared_ptr stub(v1alpha1::DRAResourceHealth::NewStub(state_->channel(state_->endpoint)));
  const std::shared_ptr reader(stub->NodeWatchResources(state_->stream.get(), {}));
  state_->reader = std::thread([this, stub, reader] {
    v1alpha1::NodeWatchResourcesResponse next;
    while (reader->Read(&next)) {
      const std::lock_guard lock(state_->mutex);
      ++state_->messages;
      state_->health.clear();
      for (const v1alpha1::DeviceHealth& device : next.devices())
        state_->health.push_back({.pool = device.device().pool_name(),
                                  .device = device.device().device_name(),
                                  .is_healthy = device.health() == v1alpha1::HEALTHY,
                                  .message = device.message()});
    }
    reader->Finish();
  });
}

void DraKubeletFake::end_health() { state_->end_stream(); }

std::vector<DeviceCondition> DraKubeletFake::health() const {
  const std::lock_guard lock(state_->mutex);
  return state_->health;
}

size_t DraKubeletFake::health_messages() const {
  const std::lock_guard lock(state_->mutex);
  return state_->messages;
}

}  // namespace carve::kubernetes::node
