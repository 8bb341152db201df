// Two coordinators and their schedulers at one API server, with faults: kills, pauses, lost connections, 410.
// After each change of a pod, a referee that shares no code with the cache adds up the grants in the
// annotations of pods.
#include <gmock/gmock.h>

#include <array>
#include <deque>
#include <random>

#include "kubernetes/coordinator/testing/coordinator_scenario.h"
#include "os/log.h"

namespace carve::kubernetes::coordinator {
namespace {

using namespace coordinator::testing;
using kubernetes::ApiFault;
using kubernetes::second_ns;

constexpr unsigned nodes = 3, node_devices = 2;
constexpr const char* lease_path =
    "/apis/coordination.k8s.io/v1/namespaces/carve-system/leases/carve-scheduler";

// client-go's defaults.
constexpr kubernetes::Nanoseconds lease_duration_ns = 15 * second_ns, renew_deadline_ns = 10 * second_ns;

// A scheduler and its coordinator. The scheduler keeps binding until it finds that it did not renew the Lease
// in time. After a pause of its process, it finds this out late.
struct Host {
  Host(std::string host, kubernetes::VirtualTime& time, kubernetes::ApiServerFake& server, uint64_t seed)
      : name(std::move(host)), client(time, server, seed) {}

  std::string name;
  kubernetes::SimulatedApiClient client;
  std::optional<Coordinator> coordinator;
  unsigned starts = 0;                        // Starts of the scheduler; each has another identity.
  bool leads = false;                         // As the scheduler believes.
  kubernetes::Nanoseconds renewed_at = 0;     // As the scheduler believes.
  kubernetes::Nanoseconds stopped_until = 0;  // Paused by SIGSTOP until then.
  std::string identity() const { return fmt::format("{}_00000000-0000-0000-0000-{:012}", name, starts); }
};

class Simulation {
 public:
  explicit Simulation(uint64_t seed)
      : dice_(seed), hosts_{Host{"h1", time_, server_, seed + 1}, Host{"h2", time_, server_, seed + 2}} {
    server_.on_change = [this](const kubernetes::ApiServerFake::Change& change) {
      if (change.collection == pods_path) check();
    };
    server_.put(config_maps, {{"metadata", {{"name", "carve-settings"}, {"namespace", "carve-system"}}},
                              {"data", {{"gpuMemoryUnit", "1GiB"}}}});
    for (unsigned n = 0; n < nodes; ++n) {
      const kubernetes::ObjectMeta node = node_object(fmt::format("n{}", n), a10_devices(n, node_devices));
      server_.put(nodes_path, {{"metadata",
                                {{"name", node.name},
                                 {"labels", {{"carve.dev/node", "extender"}}},
                                 {"annotations", nlohmann::json(node.annotations)}}}});
    }
    for (Host& host : hosts_) start(host);
  }

  void run(unsigned seconds) {
    for (unsigned i = 0; i < seconds; ++i) {
      disturb();
      for (Host& host : hosts_) schedule(host);
      time_.run_for(second_ns / 2 + static_cast<kubernetes::Nanoseconds>(dice_() % second_ns));
    }
  }
  unsigned binds = 0, takeovers = 0;

 private:
  bool chance(unsigned percent) { return dice_() % 100 < percent; }
  Host& any_host() { return hosts_[dice_() % hosts_.size()]; }

  void start(Host& host) {
    host.coordinator.emplace(host.client, CoordinatorSettings{.lease_path = lease_path,
                                                              .host = host.name,
                                                              .seed = dice_(),
                                                              .version = "1",
                                                              .utc_ns = [] { return int64_t{0}; },
                                                              .certificate_problem = [] { return ""; }});
  }

  void disturb() {
    if (chance(3)) {
      Host& host = any_host();
      host.client.forget_calls();
      host.coordinator.reset();
      start(host);
    }
    if (chance(5))
      any_host().stopped_until = time_.now() + static_cast<kubernetes::Nanoseconds>(dice_() % 30) * second_ns;
    if (chance(4)) any_host().client.set_connected(false);
    if (chance(25))
      for (Host& host : hosts_) host.client.set_connected(true);
    if (chance(15)) {
      constexpr ApiFault::Kind kinds[] = {ApiFault::Kind::lose_request, ApiFault::Kind::lose_answer,
                                          ApiFault::Kind::hang,         ApiFault::Kind::error_event,
                                          ApiFault::Kind::cut_line,     ApiFault::Kind::late,
                                          ApiFault::Kind::status};
      server_.add_fault({.kind = kinds[dice_() % std::size(kinds)],
                         .target = chance(50) ? "/binding" : "pods",
                         .status = chance(50) ? 410u : 503u});
    }
    if (chance(20)) server_.release_late();
    if (chance(3)) server_.compact();
    if (chance(60)) create_pod();
    if (const auto pods = server_.all(pods_path); !pods.empty() && chance(40)) {
      const auto& gone = pods[dice_() % pods.size()];
      server_.remove(pods_path, "a", gone["metadata"]["name"]);
    }
  }

  void create_pod() {
    const kubernetes::ObjectMeta pod =
        pod_object(fmt::format("p{}", ++created_), Bytes{(dice_() % 18 + 4) << 30});
    server_.put(pods_path, {{"metadata",
                             {{"name", pod.name},
                              {"namespace", "a"},
                              {"labels", {{"carve.dev/sliced", "true"}}},
                              {"annotations", nlohmann::json(pod.annotations)}}},
                            {"spec", nlohmann::json::object()},
                            {"status", {{"phase", "Pending"}}}});
  }

  // One turn of the host's scheduler: it binds while it believes that it is the leader, then reads the Lease.
  void schedule(Host& host) {
    if (time_.now() < host.stopped_until) return;
    if (host.leads) bind_one(host);
    if (time_.now() - host.renewed_at < 2 * second_ns) return;
    const bool is_ours = holder_ == host.identity();
    const bool is_free = time_.now() - lease_renewed_at_ > lease_duration_ns;
    if (host.leads && (!is_ours || time_.now() - host.renewed_at > renew_deadline_ns)) {
      host.leads = false;  // The scheduler exits and is restarted.
      ++host.starts;
    } else if (is_ours || is_free) {
      if (!host.leads) {
        ++takeovers;
        acquired_at_ = time_.now();
      }
      host.leads = true;
      holder_ = host.identity();
      host.renewed_at = lease_renewed_at_ = time_.now();
      server_.put(leases, {{"metadata", {{"name", "carve-scheduler"}, {"namespace", "carve-system"}}},
                           {"spec",
                            {{"holderIdentity", holder_},
                             {"acquireTime", fmt::format("{}", acquired_at_)},
                             {"leaseDurationSeconds", lease_duration_ns / second_ns},
                             {"renewTime", fmt::format("{}", time_.now())}}}});
    }
  }

  void bind_one(Host& host) {
    std::vector<nlohmann::json> waiting;
    for (const auto& pod : server_.all(pods_path))
      if (!pod["spec"].contains("nodeName")) waiting.push_back(pod);
    if (waiting.empty()) return;
    const nlohmann::json& pod = waiting[dice_() % waiting.size()];
    const std::vector<std::string> names = {"n0", "n1", "n2"};
    const auto ask = [&](const char* path, const nlohmann::json& question) {
      return host.coordinator->extender(
          {.method = "POST", .path = path, .query = "", .body = question.dump()});
    };
    const http::Response filtered = ask("/filter", {{"Pod", pod}, {"NodeNames", names}});
    if (filtered.status != 200) return;  // The coordinator has not read the settings yet.
    const auto passing = nlohmann::json::parse(std::get<std::string>(filtered.content))["NodeNames"];
    if (passing.empty()) return;
    auto response = ask("/bind", {{"PodName", pod["metadata"]["name"]},
                                  {"PodNamespace", "a"},
                                  {"PodUID", pod["metadata"]["uid"]},
                                  {"Node", passing[dice_() % passing.size()]}});
    if (auto* later = std::get_if<http::LaterContent>(&response.content)) {
      Asker& asker = askers_.emplace_back();
      asker.subscription = later->begin(asker);
    }
  }

  void check() {
    std::map<std::string, uint64_t> granted;  // By device.
    unsigned bound = 0;
    for (const auto& pod : server_.all(pods_path)) {
      const auto& annotations = pod["metadata"]["annotations"];
      if (!annotations.contains("carve.dev/slices")) continue;
      ++bound;
      const auto slices = nlohmann::json::parse(annotations["carve.dev/slices"].get<std::string>());
      for (const auto& [container, slice] : slices["containers"].items())
        for (const auto& part : slice["parts"]) granted[part[0]] += part[1].get<uint64_t>();
    }
    for (const auto& [device, bytes] : granted)
      ASSERT_LE(bytes, (22731_MiB).count) << device << " at version " << server_.version();
    if (bound > bound_) ++binds;
    bound_ = bound;
  }

  std::mt19937_64 dice_;
  kubernetes::VirtualTime time_;
  kubernetes::ApiServerFake server_;
  std::deque<Asker> askers_;
  std::array<Host, 2> hosts_;
  std::string holder_;
  kubernetes::Nanoseconds acquired_at_ = 0;
  kubernetes::Nanoseconds lease_renewed_at_ = -lease_duration_ns - 1;
  unsigned created_ = 0, bound_ = 0;
};

TEST(TwoCoordinators, no_device_is_granted_twice) {
  os::log::set_level("error");
  const char* const is_long = getenv("CARVE_LONG");
  const uint64_t histories = is_long != nullptr && *is_long != '\0' ? 500 : 12;
  unsigned binds = 0, takeovers = 0;
  for (uint64_t seed = 0; seed < histories && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    simulation.run(200);
    binds += simulation.binds;
    takeovers += simulation.takeovers;
  }
  os::log::set_level("info");
  EXPECT_GE(binds, 10 * histories);
  EXPECT_GE(takeovers, 3 * histories) << "the Lease changed its holder";
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
