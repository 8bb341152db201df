#include "kubernetes/node/kubelet_start.h"

#include <sys/sysinfo.h>

#include <future>
#include <random>
#include <thread>

#include "client/client.h"
#include "os/clock.h"
#include "os/command_line.h"
#include "os/log.h"
#include "os/process.h"
#include "wire/api/exposition.h"

namespace carve::kubernetes::node {
namespace {

constexpr std::chrono::seconds loop_patience{5};
constexpr int64_t way_patience_ns = 5 * os::second, way_check_ns = 50 * os::millisecond;

HostFacts host_facts() {
  HostFacts out;
  if (const auto boot = os::read_file("/proc/sys/kernel/random/boot_id"))
    out.boot = boot->substr(0, boot->find('\n'));
  out.cpu_milli = static_cast<uint64_t>(std::max(get_nprocs(), 1)) * 1000;
  struct sysinfo memory {};
  if (sysinfo(&memory) == 0) out.memory_bytes = static_cast<uint64_t>(memory.totalram) * memory.mem_unit;
  return out;
}

AboutObject about(const PodContainer& pod) {
  return {.kind = "Pod", .name_space = pod.namespace_, .name = pod.name, .uid = pod.uid};
}

// Returns the agent's response to GET `target`.
http::Response view_of(AgentApi& agent, const std::string& target) {
  auto text = agent.view(target);
  if (text) return {.content = std::move(*text)};
  return {.status = text.error().status == 0 ? 503 : text.error().status,
          .type = "application/problem+json",
          .content = api::write(text.error())};
}

}  // namespace

int complain(const Failure& f) { return os::complain("carve-kubelet", f); }

int print(Options::Mode mode) {
  return os::print_text(mode == Options::Mode::help         ? help_text()
                        : mode == Options::Mode::completion ? completion_script()
                                                            : "carve-kubelet " CARVE_VERSION "\n");
}

Outcome<std::optional<MetricsListener>> listen(const Options& options) {
  if (!options.metrics) return std::nullopt;
  os::TcpAddress address = *options.metrics;
  auto socket = os::listen_at(address);
  if (!socket) return failure(FailureKind::unavailable, "--metrics {}", socket.error().message);
  auto identity =
      reader_identity(options.tls_certificate, options.tls_key, options.node, os::utc_ns() / os::second);
  if (!identity)
    return failure(FailureKind::unavailable, "--tls-cert, --tls-key: {}", identity.error().message);
  os::log::info("--metrics {}", os::text(address));
  return MetricsListener{std::move(*socket), address, std::move(*identity)};
}

ApiSide::ApiSide(os::Loop& loop, const kubernetes::Connection& connection, const Options& options,
                 AgentApi& agent, ContainerRuntime& runtime, PodResources& pod_resources,
                 std::optional<MetricsListener> listener)
    : loop_(loop),
      client_(loop, connection, {.user_agent = "carve-kubelet"}),
      node_(options.node),
      pod_resources_(pod_resources),
      events_(client_, options.node, os::utc_ns),
      claims_(client_),
      publisher_(client_,
                 {.node = options.node,
                  .host = host_facts(),
                  .ends_pods = options.ends_pods,
                  .seed = std::random_device()(),
                  .reader = listener ? std::optional(NodePublisher::ReaderEndpoint{
                                           listener->address, listener->identity.key_pin})
                                     : std::nullopt},
                 publisher_effects()),
      agent_worker_(std::make_unique<AgentWorker>(agent,
                                                  [this](Result<api::AgentReport, std::string> report) {
                                                    loop_.post([this, report = std::move(report)]() mutable {
                                                      publisher_.agent_reported(std::move(report));
                                                    });
                                                  })),
      reporter_(std::make_unique<ContainerReporter>(agent, runtime, reporter_hooks())) {
  if (listener)
    reader_port_.emplace(
        loop, client_, std::move(listener->socket), std::move(listener->identity.identity), options.node,
        [this](api::MetricsFormat format, const kubernetes::ReaderCheck::Done& done) {
          give_metrics(format, done);
        },
        // A client of its own, because a call may still run while the rest of this program ends.
        [views = std::shared_ptr<AgentApi>(AgentApi::at(client::find_socket(options.agent_socket)))](
            const std::string& target) { return view_of(*views, target); });
}

NodePublisher::Effects ApiSide::publisher_effects() {
  return {.change_agent =
              [this](const api::NodeChange& change) {
                agent_worker_->run([this, change](AgentApi& agent_api) {
                  const auto done = agent_api.change_node(change);
                  if (!done && done.error().status / 100 == 4)
                    loop_.post([this, refusal = done.error().detail] { publisher_.change_refused(refusal); });
                });
              },
          .release =
              [this](const std::string& slice) {
                agent_worker_->run([slice](AgentApi& agent_api) {
                  if (const auto done = agent_api.end_when_empty(slice); !done)
                    os::log::warning("cannot release slice {}: {}", slice, done.error().detail);
                });
              },
          .update = [this](const SliceUpdate& update) { update_slice(update); },
          .note = [this](const EventNote& event) { note(event); },
          .use_way = [this](Way way) { use_way(way); },
          .publish = [this](api::Json object) { publish(std::move(object)); },
          .now_text = [] { return os::rfc3339(os::utc_ns(), os::Decimals::milliseconds); }};
}

void ApiSide::update_slice(const SliceUpdate& update) {
  agent_worker_->run([this, update](AgentApi& agent_api) {
    const auto done = agent_api.change(update.slice, update.change);
    const std::string refusal = done ? "" : done.error().detail;
    if (!done) os::log::warning("cannot update slice {}: {}", update.slice, refusal);
    // After any other failure the agent's state is unknown, so the update is retried.
    const bool is_rejected = !done && done.error().status / 100 == 4;
    if (done || is_rejected) loop_.post([this, update, refusal] { publisher_.updated(update, refusal); });
    if (!done && (update.is_awaited || !is_rejected)) return;
    note({.about = about(update.holder),
          .severity = done ? Severity::normal : Severity::warning,
          .reason = done ? "CarveSliceChanged" : "CarveRefused",
          .action = "ChangeSlice",
          .note = update_note(update, refusal)});
  });
}

ContainerReporter::Hooks ApiSide::reporter_hooks() {
  const auto warn = [this](const char* reason, const PodContainer& pod, const std::string& message) {
    note({.about = about(pod),
          .severity = Severity::warning,
          .reason = reason,
          .action = "StartContainer",
          .note = message});
  };
  return {.found =
              [this](const RuntimeCapability& found) {
                loop_.post([this, found] { publisher_.runtime_found(found); });
              },
          .not_mounted = [warn](const PodContainer& pod,
                                const std::string& message) { warn("CarveNotMounted", pod, message); },
          .look_up =
              [this](const api::Slice& slice) {
                DraSide* const dra = dra_;
                return dra != nullptr && dra->look_up(slice);
              },
          .claims = [this] { return pod_resources_.claims(); },
          .refused = [warn](const PodContainer& pod,
                            const std::string& message) { warn("CarveRefused", pod, message); }};
}

std::optional<Way> ApiSide::way() const {
  const int way = way_;
  return way < 0 ? std::nullopt : std::optional(static_cast<Way>(way));
}

void ApiSide::use_way(Way way) {
  way_ = static_cast<int>(way);
  os::log::info("pods get the devices of this node through: {}", text(way));
  if (way == Way::dra && !resource_slice_) {
    resource_slice_.emplace(client_, node_, std::random_device()());
    // kubelet does not register the driver again if its sockets did not go away meanwhile.
    if (is_dra_registered_) resource_slice_->release();
  }
  // kubelet deletes the object when the driver has been gone for 30 s.
  if (way != Way::dra) resource_slice_.reset();
}

void ApiSide::publish(api::Json object) {
  if (resource_slice_) resource_slice_->want(std::move(object));
}

void ApiSide::kubelet_asked_for_driver() {
  loop_.post([this] {
    is_dra_registered_ = false;
    if (resource_slice_) resource_slice_->hold();
  });
}

void ApiSide::dra_registered(const std::string& problem) {
  loop_.post([this, problem] {
    publisher_.dra_registered(problem);
    is_dra_registered_ = problem.empty();
    if (resource_slice_ && problem.empty()) resource_slice_->release();
  });
}

void ApiSide::dra_ended() {
  loop_.post([this] { is_dra_registered_ = false; });
}

void ApiSide::set_dra(DraSide* dra) { dra_ = dra; }

ApiSide::~ApiSide() = default;

// The agent is called in a separate thread.
void ApiSide::give_metrics(api::MetricsFormat format, const kubernetes::ReaderCheck::Done& done) {
  agent_worker_->run([this, format, done](AgentApi& agent_api) {
    auto text = agent_api.metrics(format);
    loop_.post([this, format, done, text = std::move(text)]() mutable {
      KubeletFigures figures = publisher_.figures();
      figures.version = CARVE_VERSION;
      done({.type = api::metrics_type(format),
            .content = metrics_text(figures, text ? std::optional(std::move(*text)) : std::nullopt, format)});
    });
  });
}

ContainerStarter::PodAnswer ApiSide::pod(const std::string& name_space, const std::string& name) {
  const auto answer = std::make_shared<std::promise<ContainerStarter::PodAnswer>>();
  loop_.post([this, name_space, name, answer] {
    publisher_.find_pod(name_space, name,
                        [answer](ContainerStarter::PodAnswer pod) { answer->set_value(std::move(pod)); });
  });
  auto future = answer->get_future();
  if (future.wait_for(loop_patience) != std::future_status::ready)
    return tl::unexpected(
        fmt::format("pod {}/{} cannot be read: carve-kubelet is busy or shutting down", name_space, name));
  return future.get();
}

ClaimPreparer::ClaimAnswer ApiSide::claim(const ClaimName& name) {
  const auto answer = std::make_shared<std::promise<ClaimPreparer::ClaimAnswer>>();
  loop_.post([this, name, answer] {
    claims_.read(name, [answer](ClaimPreparer::ClaimAnswer claim) { answer->set_value(std::move(claim)); });
  });
  auto future = answer->get_future();
  if (future.wait_for(loop_patience) != std::future_status::ready)
    return tl::unexpected(
        fmt::format("claim {} cannot be read: carve-kubelet is busy or shutting down", name.text()));
  return future.get();
}

void ApiSide::note(const EventNote& note) {
  loop_.post([this, note] { events_.send(note); });
}

PluginSide::PluginSide(const Options& options, AgentApi& agent, PodResources& pod_resources, ApiSide& api)
    : agent_(agent),
      api_(api),
      pod_resources_(pod_resources),
      plugin_dir_(options.plugin_dir),
      began_at_(os::monotonic_ns()),
      starter_(agent, sources(options)),
      dra_(options.node, DraSockets(options.kubelet_dir), agent, links()),
      worker_({.turn = [this] { return turn(); }}) {
  api_.set_dra(&dra_);
}

PluginSide::~PluginSide() { api_.set_dra(nullptr); }

// An unknown way is not waited for longer: without slots kubelet would reject the pods that a restarted node
// already had.
int64_t PluginSide::turn() {
  const std::optional<Way> way = api_.way();
  if (!way && os::monotonic_ns() - began_at_ < way_patience_ns) return way_check_ns;
  if (way.value_or(Way::extender) == Way::extender) {
    if (dra_.end()) api_.dra_ended();
    if (!registrar_) registrar_ = std::make_unique<PluginRegistrar>(plugin_dir_, handlers());
  } else {
    registrar_.reset();
    dra_.serve();
    dra_.report_health();
  }
  return os::second;
}

DraSide::Links PluginSide::links() {
  return {.claim = [this](const ClaimName& name) { return api_.claim(name); },
          .kubelet_asked = [this] { api_.kubelet_asked_for_driver(); },
          .registered = [this](const std::string& problem) { api_.dra_registered(problem); },
          .expect_container = [this] { api_.expect_container(); },
          .note = [this](const EventNote& note) { api_.note(note); }};
}

PluginHandlers PluginSide::handlers() {
  return {.prefer =
              [this](const std::vector<std::string>& available, const std::vector<std::string>& must,
                     size_t size) {
                const os::MutexLock lock(mutex_);
                return choose_slots(uses_, available, must, size);
              },
          .allocated = [this](ContainerSlot slot) { return allocated(slot); },
          .starting =
              [this](ContainerSlot slot, const std::function<bool()>& is_over) {
                {
                  const os::MutexLock lock(mutex_);
                  uses_.use(slot);
                }
                return starter_.start(slot, is_over);
              }};
}

// Waits up to 5 s for the runtime's first response.
RuntimeCapability PluginSide::known_runtime() const {
  RuntimeCapability out = api_.runtime();
  for (int i = 0; !out.is_known && i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    out = api_.runtime();
  }
  return out;
}

Outcome<std::optional<api::SlotFiles>> PluginSide::allocated(ContainerSlot slot) {
  {
    const os::MutexLock lock(mutex_);
    uses_.use(slot);
  }
  // If the agent does not respond, the old file stays, and the container's start fails until the agent is
  // back.
  if (const auto done = agent_.withdraw_slot(slot); !done)
    os::log::warning("slot {}: {}", text(slot), done.error().detail);
  // A runtime whose CDI support is unknown still mounts the files.
  if (known_runtime().has_cdi) return std::nullopt;
  auto files = agent_.slot_files(slot);
  if (!files) return failure(FailureKind::unavailable, "slot {}: {}", text(slot), files.error().detail);
  return std::move(*files);
}

ContainerStarter::Sources PluginSide::sources(const Options& options) {
  return {.node = options.node,
          .list = [this] { return pod_resources_.list(); },
          .pod = [this](const std::string& name_space,
                        const std::string& name) { return api_.pod(name_space, name); },
          .runtime = [this] { return api_.runtime(); },
          .granted = [this](const api::SliceRequest& request,
                            const api::Slice& slice) { granted(request, slice); },
          .refused =
              [this](const std::optional<PodContainer>& pod, const std::string& message) {
                os::log::warning("cannot start a container: {}", message);
                if (pod)
                  api_.note({.about = about(*pod),
                             .severity = Severity::warning,
                             .reason = "CarveRefused",
                             .action = "StartContainer",
                             .note = fmt::format("container {}: {}", pod->container, message)});
              },
          .look_for_orphans = [this] { api_.look_for_orphans(); },
          .now = os::monotonic_ns,
          .sleep = [](int64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }};
}

void PluginSide::granted(const api::SliceRequest& request, const api::Slice& slice) {
  const PodContainer& pod = *request.holder->pod;
  os::log::info("slot {}: pod {}/{}, container {} has slice {}", request.slot, pod.namespace_, pod.name,
                pod.container, slice.name);
  api_.expect_container();
  api_.note({.about = about(pod),
             .severity = Severity::normal,
             .reason = "CarveSliceReady",
             .action = "StartContainer",
             .note = fmt::format("container {}: {}", pod.container, grant_note(slice))});
}

int serve(os::Loop& loop, const os::Fd& signals) {
  loop.watch(signals.get(), EPOLLIN, [&](uint32_t) { loop.stop(); });
  loop.run();
  loop.forget(signals.get());
  os::log::info("carve-kubelet stopped; slices and containers keep running");
  return 0;
}

}  // namespace carve::kubernetes::node
