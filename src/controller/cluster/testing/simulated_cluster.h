// A cluster for tests of ClusterUsage under virtual time: an API server, nodes with ledgers, and the store of
// the controller. Nodes and controller can fail at any step.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <random>

#include "controller/billing/usage_copy.h"
#include "controller/cluster/cluster_usage.h"
#include "kubernetes/api/testing/simulated_api_client.h"
#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::controller {

using kubernetes::Nanoseconds;
using kubernetes::second_ns;

inline constexpr int64_t simulated_epoch_ns = 1'793'491'200 * second_ns;  // 2026-11-01.

// A node: its agent's ledger, and carve-kubelet's port.
struct SimulatedNode {
  enum class Fault : uint8_t { none, away, hangs, loses_answer, repeats_answer, changes_key, sends_garbage };

  std::string name;
  std::string key = "sha256//" + std::string(43, 'A') + "=";  // The key of the certificate that it serves.
  std::string published_key = key;
  std::string boot = "boot-1";
  unsigned incarnation = 1;  // Of its ledger.
  uint64_t last_id = 0;
  std::vector<ledger::UsageRecord> records;
  Fault fault = Fault::none;
  std::string last_answer = "{}", last_target;
  std::vector<std::string> tokens;                            // That it received.
  std::function<std::string(const std::string& target)> lie;  // A hostile node's answers.

  std::string answer(const std::string& target) {
    if (lie) return lie(target);
    if (fault == Fault::sends_garbage) return "{\"records\":[{\"id\":";
    ledger::UsagePage page;
    page.query = target.substr(target.find('?') + 1);
    const auto value = [&](const char* name_of) {
      const size_t at = target.find(name_of);
      return at == std::string::npos ? std::string() : target.substr(at + std::string(name_of).size());
    };
    if (const std::string after = value("after="); !after.empty()) {
      const size_t limit = std::stoull(value("limit="));
      for (const ledger::UsageRecord& record : records)
        if (record.id > std::stoull(after) && page.records.size() < limit) page.records.push_back(record);
    } else {
      std::string ids = "," + value("ids=") + ",";
      for (const ledger::UsageRecord& record : records)
        if (ids.find("," + std::to_string(record.id) + ",") != std::string::npos)
          page.records.push_back(record);
    }
    // The response to another request. One to the same request would only be a late report of the same node.
    if (fault == Fault::repeats_answer && target != last_target) return last_answer;
    last_target = target;
    return last_answer = api::write(page);
  }
};

// The connection to a node.
class SimulatedNodeClient final : public kubernetes::ApiClient {
 public:
  SimulatedNodeClient(kubernetes::VirtualTime& time, kubernetes::ApiServerFake& server, SimulatedNode* node,
                      const ClusterNode& wanted, std::string token, std::mt19937_64& random)
      : time_(time),
        server_(server),
        node_(node),
        key_(wanted.reader.key),
        token_(std::move(token)),
        random_(random) {}

  std::unique_ptr<kubernetes::ApiCall> send(kubernetes::ApiRequest request, Answered answered) override {
    auto call = std::make_unique<Call>();
    const auto reply = [this, weak = std::weak_ptr<int>(call->alive), answered](kubernetes::ApiAnswer answer,
                                                                                Nanoseconds delay) {
      time_.at(time_.now() + delay, [weak, answered, answer] {
        if (!weak.expired()) answered(answer);
      });
    };
    const auto delay = static_cast<Nanoseconds>(random_() % (second_ns / 20));
    using Fault = SimulatedNode::Fault;
    if (node_ == nullptr || node_->fault == Fault::away)
      reply({.status = 0, .body = "", .problem = "cannot connect", .may_have_happened = false}, delay);
    else if (node_->key != key_)
      reply({.status = 0, .body = "", .problem = "the key differs", .may_have_happened = false}, delay);
    else
      exchange(request, reply, delay);
    return call;
  }
  std::unique_ptr<kubernetes::ApiCall> watch(kubernetes::ApiRequest, Lines) override { return nullptr; }
  std::unique_ptr<kubernetes::ApiCall> after(Nanoseconds, std::function<void()>) override { return nullptr; }
  Nanoseconds now() const override { return time_.now(); }

 private:
  struct Call final : kubernetes::ApiCall {
    std::shared_ptr<int> alive = std::make_shared<int>();
  };
  void exchange(const kubernetes::ApiRequest& request,
                const std::function<void(kubernetes::ApiAnswer, Nanoseconds)>& reply, Nanoseconds delay) {
    using Fault = SimulatedNode::Fault;
    node_->tokens.push_back(token_);
    const auto audience = server_.token_audiences.find(token_);
    const bool is_valid = audience != server_.token_audiences.end() &&
                          audience->second == kubernetes::usage_audience(node_->name);
    if (!is_valid)
      reply({.status = 401, .body = "", .problem = "status 401"}, delay);
    else if (node_->fault == Fault::hangs || node_->fault == Fault::loses_answer)
      reply({.status = 0, .body = "", .problem = "no response in time"},
            node_->fault == Fault::hangs ? request.deadline_ns : delay);
    else
      reply({.status = 200, .body = node_->answer(request.target), .problem = ""}, delay);
  }

  kubernetes::VirtualTime& time_;
  kubernetes::ApiServerFake& server_;
  SimulatedNode* const node_;
  const std::string key_, token_;
  std::mt19937_64& random_;
};

// The store, in virtual time. `kill_at` ends the controller before, or after, the next writes.
class SimulatedBooks final : public UsageBooks {
 public:
  SimulatedBooks(kubernetes::VirtualTime& time, std::string path) : time_(time), path_(std::move(path)) {
    open();
  }
  void open() {
    store.reset();
    auto opened = UsageStore::open(path_, 1);
    if (opened) store.emplace(std::move(opened->store));
    lives_ = std::make_shared<int>();
  }
  void find_position(const std::string& node, std::function<void(Outcome<CopyPosition>)> found) override {
    later([this, node, found] { found(store->position(node)); });
  }
  void write(const std::string& node, CopyWrite write, std::function<void(Outcome<void>)> done) override {
    later([this, node, write = std::move(write), done] {
      ++writes;
      if (writes == kill_before) return killed();
      const auto written = write_copy(*store, node, write, nullptr);
      if (writes == kill_after) return killed();
      done(written);
    });
  }

  std::optional<UsageStore> store;
  uint64_t writes = 0, kill_before = 0, kill_after = 0;
  std::function<void()> killed = [] {};

 private:
  void later(std::function<void()> act) {
    time_.at(time_.now() + second_ns / 1000, [weak = std::weak_ptr<int>(lives_), act] {
      if (!weak.expired()) act();
    });
  }
  kubernetes::VirtualTime& time_;
  const std::string path_;
  std::shared_ptr<int> lives_;  // Replaced when the controller is killed.
};

class SimulatedCluster {
 public:
  explicit SimulatedCluster(uint64_t seed) : random(seed) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    books.emplace(time, folder + "/usage.db");
  }
  ~SimulatedCluster() {
    usage.reset();
    books.reset();
    std::filesystem::remove_all(folder);
  }

  // Starts the controller, after killing the one that runs.
  void start() {
    stop();
    books->open();
    client = std::make_unique<kubernetes::SimulatedApiClient>(time, server, random());
    usage.emplace(
        *client, *books,
        ClusterUsage::Settings{
            .account = {}, .schedule = schedule, .local_nodes = {"local"}, .seed = random()},
        ClusterUsage::Effects{
            .connect =
                [this](const ClusterNode& node, const std::string& token) {
                  const auto found = nodes.find(node.name);
                  return std::make_unique<SimulatedNodeClient>(
                      time, server, found == nodes.end() ? nullptr : &found->second, node, token, random);
                },
            .now = [this] { return stamp("controller"); },
            .note =
                [this](const std::string& node, const ChangeEvent& event) {
                  events.push_back(fmt::format("{} {}: {}", node, carve::text(event.reason), event.message));
                }});
  }
  void stop() {
    usage.reset();
    if (client) client->forget_calls();
    client.reset();
  }
  ledger::Stamp stamp(const std::string& boot) const { return {utc(), boot, time.now()}; }
  int64_t utc() const { return simulated_epoch_ns + time.now(); }

  SimulatedNode& add_node(const std::string& name) {
    SimulatedNode& node = nodes[name];
    node.name = name;
    publish(node);
    return node;
  }
  void publish(const SimulatedNode& node) {
    const kubernetes::NodeReader reader{.address = "10.0.0.1:9472", .key = node.published_key};
    server.put(
        "/api/v1/nodes",
        {{"metadata",
          {{"name", node.name}, {"annotations", {{kubernetes::reader_annotation, api::write(reader)}}}}}});
  }
  // Puts a pod that is bound to the node, and returns its uid.
  std::string put_pod(const std::string& node, const std::string& name_space, const std::string& name,
                      const std::string& account = "") {
    nlohmann::json labels = {{"carve.dev/sliced", "true"}};
    if (!account.empty()) labels[kubernetes::account_label] = account;
    server.put("/api/v1/pods", {{"metadata",
                                 {{"name", name},
                                  {"namespace", name_space},
                                  {"labels", labels},
                                  {"annotations",
                                   {{kubernetes::slices_annotation,
                                     fmt::format(R"({{"v":1,"node":"{}","containers":{{}}}})", node)}}}}},
                                {"spec", {{"nodeName", node}}}});
    return (*server.find("/api/v1/pods", name_space, name))["metadata"]["uid"];
  }
  // Grants a slice to the pod's container. No two grants are at the same time.
  ledger::UsageRecord& grant(SimulatedNode& node, const std::string& name_space, const std::string& pod,
                             const std::string& uid, const std::string& account = "") {
    time.run_for(1);
    ledger::UsageRecord record;
    record.id = ++node.last_id;
    record.slice.name = fmt::format("k{}", record.id);
    record.slice.account = account.empty() ? name_space : account;
    record.slice.holder.pod = PodContainer{name_space, pod, uid, "main"};
    SlicePart part{.memory = Bytes{(1 + random() % 8) * (1_GiB).count},
                   .share = {static_cast<uint32_t>(random() % 10) * 1000},
                   .usable = 22731_MiB,
                   .model = "NVIDIA A10"};
    part.device.bytes[0] = static_cast<uint8_t>(1 + random() % 2);
    record.slice.parts = {part};
    record.from = stamp(node.boot);
    node.records.push_back(std::move(record));
    return node.records.back();
  }

  const std::string folder = fmt::format("/dev/shm/carve-cluster-{}", getpid());
  std::mt19937_64 random;
  kubernetes::VirtualTime time;
  kubernetes::ApiServerFake server;
  std::map<std::string, SimulatedNode> nodes;
  std::vector<std::string> events;
  ReadScheduleSettings schedule;
  std::optional<SimulatedBooks> books;
  std::unique_ptr<kubernetes::SimulatedApiClient> client;
  std::optional<ClusterUsage> usage;
};

}  // namespace carve::controller
