#include "kubelet/agent_link.h"

#include "client/client.h"

namespace carve::kubelet {
namespace {

constexpr std::chrono::seconds patience{5};

class SocketLink final : public AgentLink {
 public:
  explicit SocketLink(const std::string& socket) : client_(socket, {.patience = patience}) {}

  Answer<AgentReport> report() override {
    const auto version = client_.get<api::Version>("/v1/version");
    if (!version) return tl::unexpected(version.error());
    const auto node = client_.get<api::Node>("/v1/node");
    if (!node) return tl::unexpected(node.error());
    auto devices = client_.get<api::DeviceList>("/v1/devices");
    if (!devices) return tl::unexpected(devices.error());
    auto slices = client_.get<api::SliceList>("/v1/slices");
    if (!slices) return tl::unexpected(slices.error());
    return AgentReport{.simulated = version->simulated,
                       .node = *node,
                       .devices = std::move(devices->devices),
                       .links = std::move(devices->links),
                       .slices = std::move(slices->slices)};
  }
  Answer<api::Slice> grant(const api::SliceRequest& request) override {
    return client_.post<api::Slice>("/v1/slices", request);
  }
  Answer<api::SlotFiles> files_of(ContainerSlot slot) override {
    return client_.get<api::SlotFiles>("/v1/slots/" + text(slot));
  }
  Answer<api::Nothing> withdraw(ContainerSlot slot) override {
    return client_.remove<api::Nothing>("/v1/slots/" + text(slot));
  }
  Answer<api::Slice> release(const std::string& slice) override {
    return client_.remove<api::Slice>(fmt::format("/v1/slices/{}?when_empty=true", slice));
  }
  Answer<api::Slice> update(const std::string& slice, const api::SliceChange& change) override {
    return client_.patch<api::Slice>("/v1/slices/" + slice, change);
  }
  Answer<api::Nothing> add_container(const std::string& slice,
                                     const api::ContainerStarted& started) override {
    return client_.post<api::Nothing>(fmt::format("/v1/slices/{}/container", slice), started);
  }
  Answer<std::string> metrics() override { return client_.text("/metrics"); }
  Answer<api::Node> change(const api::NodeChange& change) override {
    return client_.patch<api::Node>("/v1/node", change);
  }

 private:
  client::Client client_;
};

}  // namespace

std::unique_ptr<AgentLink> AgentLink::at(const std::string& socket) {
  return std::make_unique<SocketLink>(socket);
}

}  // namespace carve::kubelet
