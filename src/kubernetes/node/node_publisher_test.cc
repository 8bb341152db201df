// The publisher of the node's object against an in-memory API server under virtual time.
#include "kubernetes/node/node_publisher.h"

#include <gmock/gmock.h>

#include "kubernetes/api/testing/simulated_api_client.h"
#include "kubernetes/node/event_sender.h"
#include "kubernetes/node/testing/agent_api_fake.h"

namespace carve::kubernetes::node {
namespace {

using kubernetes::second_ns;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* nodes = "/api/v1/nodes";
constexpr const char* pods = "/api/v1/pods";

class NodePublisherTest : public testing::Test {
 protected:
  NodePublisherTest() {
    server.put(nodes, {{"metadata", {{"name", "n1"}}}, {"status", {{"capacity", {{"cpu", "2"}}}}}});
    publisher = std::make_unique<NodePublisher>(
        client, NodePublisher::Settings{.node = "n1", .host = {"b", 2000, 1 << 30}, .seed = 7},
        NodePublisher::Effects{
            .change_agent = [this](const api::NodeChange& change) { changes.push_back(change); },
            .release = [this](const std::string& slice) { released.push_back(slice); },
            .update = [this](const SliceUpdate& update) { updates.push_back(update); },
            .note = [this](const EventNote& note) { notes.push_back(note); },
            .now_text = [] { return "2026-01-01T00:00:00Z"; }});
  }
  void begin() {
    agent.state.node.labels["carve.dev/mode"] = "memory-and-compute";
    publisher->agent_reported(*agent.report());
    publisher->runtime_found({.has_cdi = true, .message = ""});
    time.run_for(10 * second_ns);
  }
  const json& node() { return *server.find(nodes, "", "n1"); }
  std::string uid_of(const char* pod) { return (*server.find(pods, "a", pod))["metadata"]["uid"]; }
  void put_pod(const char* name, const char* phase = "Running") {
    server.put(pods, {{"metadata", {{"name", name}, {"namespace", "a"}}},
                      {"spec", {{"nodeName", "n1"}}},
                      {"status", {{"phase", phase}}}});
  }
  std::string condition(const char* type, const char* field) {
    for (const json& one : node()["status"]["conditions"])
      if (one["type"] == type) return one[field];
    return "";
  }
  // Returns the result of a request for a pod: "none", its uid, or the problem.
  std::string find(const char* name) {
    std::string out = "never called back";
    publisher->find_pod("a", name, [&](NodePublisher::PodAnswer pod) {
      out = !pod ? pod.error() : *pod ? (*pod)->meta.uid : "none";
    });
    time.run_for(5 * second_ns);
    return out;
  }
  api::Slice slice_of(const char* name, const std::string& pod, const std::string& uid) {
    api::Slice out;
    out.name = name;
    out.holder = Holder{.pod = PodContainer{"a", pod, uid, "main"}, .claim = {}};
    return out;
  }

  kubernetes::VirtualTime time;
  kubernetes::ApiServerFake server;
  kubernetes::SimulatedApiClient client{time, server, 3};
  AgentApiFake agent;
  std::vector<api::NodeChange> changes;
  std::vector<std::string> released;
  std::vector<SliceUpdate> updates;
  std::vector<EventNote> notes;
  std::unique_ptr<NodePublisher> publisher;
};

TEST_F(NodePublisherTest, the_node_object_shows_the_agents_state) {
  begin();
  EXPECT_EQ(node()["metadata"]["labels"]["carve.dev/node"], "extender");
  EXPECT_TRUE(
      kubernetes::read_devices(node()["metadata"]["annotations"]["carve.dev/devices"].get<std::string>()));
  EXPECT_EQ(node()["status"]["capacity"]["carve.dev/memory"], std::to_string(22731ull << 20));
  EXPECT_EQ(node()["status"]["capacity"]["cpu"], "2") << "values of other programs are kept";
  EXPECT_EQ(node()["status"]["allocatable"]["carve.dev/compute"], "100");
  EXPECT_EQ(condition("CarveReady", "status"), "True");
  EXPECT_THAT(changes, IsEmpty());
}

TEST_F(NodePublisherTest, writes_once_and_again_after_kubelet_resets_the_totals) {
  begin();
  const auto version = server.version();
  publisher->agent_reported(*agent.report());
  time.run_for(60 * second_ns);
  EXPECT_EQ(server.version(), version);
  json zeroed = node();
  zeroed["status"]["allocatable"]["carve.dev/memory"] = "0";
  server.put(nodes, zeroed);
  time.run_for(10 * second_ns);
  EXPECT_EQ(node()["status"]["allocatable"]["carve.dev/memory"], std::to_string(22731ull << 20));
}

TEST_F(NodePublisherTest, a_label_is_passed_to_the_agent) {
  begin();
  json labelled = node();
  labelled["metadata"]["labels"]["carve.dev/compute-policy"] = "native-burst-share";
  server.put(nodes, labelled);
  time.run_for(10 * second_ns);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes[0].policy, Policy::native_burst_share);
}

TEST_F(NodePublisherTest, a_rejected_setting_is_reported_once_and_sent_again_after_a_pause) {
  begin();
  json labelled = node();
  labelled["metadata"]["labels"]["carve.dev/compute-policy"] = "native-burst-share";
  server.put(nodes, labelled);
  const auto seconds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      publisher->agent_reported(*agent.report());  // The change is missing from the report.
      time.run_for(second_ns);
      if (!changes.empty()) publisher->change_refused("slice a holds a part of device 0");
    }
  };
  seconds(20);
  EXPECT_EQ(changes.size(), 1u);
  EXPECT_EQ(std::ranges::count(notes, "CarveRefused", &EventNote::reason), 1);
  seconds(40);
  EXPECT_EQ(changes.size(), 2u);
  EXPECT_EQ(std::ranges::count(notes, "CarveRefused", &EventNote::reason), 1) << "the rejection is the same";

  publisher->agent_reported(tl::unexpected(std::string("no agent at /s")));
  seconds(2);
  EXPECT_EQ(changes.size(), 3u) << "an agent that returns gets the change immediately";
}

TEST_F(NodePublisherTest, a_patch_that_is_always_undone_is_not_repeated_endlessly) {
  server.on_change = [this](const kubernetes::ApiServerFake::Change& change) {
    if (change.collection != nodes || !change.after ||
        !change.after->value("metadata", json()).contains("labels"))
      return;
    json undone = *change.after;
    undone["metadata"].erase("labels");
    server.put(nodes, undone);
  };
  begin();
  const size_t before = server.requests().size();
  time.run_for(60 * second_ns);
  EXPECT_LT(server.requests().size() - before, 60u);
}

TEST_F(NodePublisherTest, the_condition_reports_a_missing_agent) {
  begin();
  publisher->agent_reported(tl::unexpected(std::string("no agent at /s")));
  time.run_for(10 * second_ns);
  EXPECT_EQ(condition("CarveReady", "message"), "no agent at /s");
  EXPECT_EQ(node()["status"]["capacity"]["carve.dev/memory"], std::to_string(22731ull << 20));
}

TEST_F(NodePublisherTest, slices_of_pods_that_are_gone_are_released) {
  put_pod("runs");
  put_pod("over", "Succeeded");
  begin();
  agent.state.slices = {slice_of("1", "runs", uid_of("runs")), slice_of("2", "over", uid_of("over")),
                        slice_of("3", "gone", "u-gone"), slice_of("4", "runs", "an earlier uid")};
  publisher->agent_reported(*agent.report());
  time.run_for(5 * second_ns);
  EXPECT_THAT(released, testing::UnorderedElementsAre("2", "3", "4"));
  released.clear();
  server.remove(pods, "a", "runs");
  time.run_for(5 * second_ns);
  EXPECT_THAT(released, testing::Contains("1"));
}

TEST_F(NodePublisherTest, nothing_is_released_without_proof) {
  begin();
  agent.state.slices = {slice_of("3", "gone", "u-gone")};
  client.set_connected(false);
  publisher->agent_reported(*agent.report());
  time.run_for(60 * second_ns);
  EXPECT_THAT(released, IsEmpty());
  client.set_connected(true);
  publisher->agent_reported(*agent.report());
  time.run_for(60 * second_ns);
  EXPECT_THAT(released, ElementsAre("3"));
}

TEST_F(NodePublisherTest, the_cached_pod_is_used_only_if_the_api_server_does_not_respond) {
  put_pod("web-0");
  begin();
  const std::string uid = uid_of("web-0");
  EXPECT_EQ(find("web-0"), uid);
  EXPECT_EQ(find("other"), "none");
  client.set_connected(false);
  time.run_for(second_ns);
  EXPECT_EQ(find("web-0"), uid) << "the node's copy";
  EXPECT_THAT(find("other"), HasSubstr("pod a/other cannot be read"));
}

TEST_F(NodePublisherTest, a_recreated_pod_is_not_mistaken_for_its_predecessor) {
  put_pod("web-0");
  begin();
  const std::string before = uid_of("web-0");
  server.add_fault({.kind = kubernetes::ApiFault::Kind::late, .method = "WATCH", .target = "/pods"});
  server.remove(pods, "a", "web-0");
  put_pod("web-0");
  EXPECT_EQ(find("web-0"), uid_of("web-0")) << "the watch is late but the GET is not";
  EXPECT_NE(find("web-0"), before);
}

TEST_F(NodePublisherTest, a_requested_pod_is_cached_before_the_watch_reports_it) {
  begin();
  server.add_fault({.kind = kubernetes::ApiFault::Kind::late, .method = "WATCH", .target = "/pods"});
  put_pod("web-0");
  const std::string uid = uid_of("web-0");
  EXPECT_EQ(find("web-0"), uid);
  client.set_connected(false);
  EXPECT_EQ(find("web-0"), uid);
}

TEST_F(NodePublisherTest, new_amounts_are_passed_to_the_agent_once) {
  put_pod("web-0");
  begin();
  agent.state.slices = {slice_of("1", "web-0", uid_of("web-0"))};
  agent.state.slices[0].parts.push_back({.uuid = AgentApiFake::uuid, .quota_bytes = 1024});
  publisher->agent_reported(*agent.report());
  json pod = *server.find(pods, "a", "web-0");
  pod["metadata"]["annotations"]["carve.dev/slices"] = fmt::format(
      R"({{"v":1,"node":"n1","containers":{{"main":{{"parts":[["{}",2048,0]]}}}}}})", AgentApiFake::uuid);
  server.put(pods, pod);
  time.run_for(5 * second_ns);
  for (int i = 0; i < 3; ++i) publisher->agent_reported(*agent.report());
  EXPECT_THAT(updates,
              ElementsAre(::testing::Field(&SliceUpdate::change, api::SliceChange{.memory_bytes = 2048})));
  time.run_for(40 * second_ns);
  publisher->agent_reported(*agent.report());
  EXPECT_EQ(updates.size(), 2u) << "the agent may have rejected the update temporarily";
}

// The coordinator waits for the result of a change that it has started.
TEST_F(NodePublisherTest, the_result_of_a_change_is_written_until_the_change_has_ended) {
  put_pod("web-0");
  begin();
  const auto results = [&] {
    const json& annotations = node()["metadata"]["annotations"];
    if (!annotations.contains("carve.dev/ledger")) return std::vector<kubernetes::ChangeResult>();
    return kubernetes::read_ledger(annotations["carve.dev/ledger"].get<std::string>())->results;
  };
  const auto request = [&](const std::string& more) {
    json pod = *server.find(pods, "a", "web-0");
    pod["metadata"]["annotations"]["carve.dev/slices"] =
        fmt::format(R"({{"v":1,"node":"n1","containers":{{"main":{{"parts":[["{}",2048,0]]{}}}}}}})",
                    AgentApiFake::uuid, more);
    server.put(pods, pod);
    time.run_for(5 * second_ns);
  };
  agent.state.slices = {slice_of("1", "web-0", uid_of("web-0"))};
  agent.state.slices[0].parts.push_back({.uuid = AgentApiFake::uuid, .quota_bytes = 4096});
  publisher->agent_reported(*agent.report());
  request(R"(,"memory_before":4096)");
  EXPECT_THAT(results(), IsEmpty()) << "the agent has not responded";
  ASSERT_EQ(updates.size(), 1u);
  EXPECT_TRUE(updates[0].is_awaited);
  publisher->updated(updates[0], "the slice holds 3 KiB");
  time.run_for(40 * second_ns);
  publisher->agent_reported(*agent.report());
  time.run_for(5 * second_ns);
  EXPECT_EQ(updates.size(), 2u);
  ASSERT_EQ(results().size(), 1u) << "the update is repeated, and its last result is kept";
  EXPECT_EQ(results()[0].memory, 2048u);
  EXPECT_THAT(results()[0].refusal, HasSubstr("the slice holds 3 KiB"));
  agent.state.slices[0].parts[0].quota_bytes = 2048;
  publisher->agent_reported(*agent.report());
  time.run_for(5 * second_ns);
  ASSERT_EQ(results().size(), 1u);
  EXPECT_EQ(results()[0].refusal, "");
  request("");
  EXPECT_THAT(results(), IsEmpty());
  agent.state.slices.clear();
  publisher->agent_reported(*agent.report());
  request(R"(,"memory_before":4096)");
  EXPECT_EQ(results().size(), 1u) << "the container starts with the new amounts";
}

TEST_F(NodePublisherTest, a_difference_between_ledger_and_pods_is_written_if_it_persists) {
  put_pod("web-0");
  begin();
  const auto written = [&] { return node()["metadata"]["annotations"].contains("carve.dev/ledger"); };
  const auto report_for = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      publisher->agent_reported(*agent.report());
      time.run_for(second_ns);
    }
  };
  agent.state.slices = {slice_of("1", "web-0", uid_of("web-0"))};
  agent.state.slices[0].parts.push_back({.uuid = AgentApiFake::uuid, .quota_bytes = 2048});
  report_for(20);
  EXPECT_FALSE(written()) << "the pod's annotation may arrive late";
  report_for(20);
  ASSERT_TRUE(written());
  const auto ledger =
      kubernetes::read_ledger(node()["metadata"]["annotations"]["carve.dev/ledger"].get<std::string>());
  ASSERT_TRUE(ledger) << ledger.error();
  ASSERT_EQ(ledger->parts.size(), 1u);
  EXPECT_EQ(ledger->parts[0].pod, "a/web-0");
  EXPECT_EQ(ledger->parts[0].memory, 2048u);
  json pod = *server.find(pods, "a", "web-0");
  pod["metadata"]["annotations"]["carve.dev/slices"] = fmt::format(
      R"({{"v":1,"node":"n1","containers":{{"main":{{"parts":[["{}",2048,0]]}}}}}})", AgentApiFake::uuid);
  server.put(pods, pod);
  time.run_for(5 * second_ns);
  report_for(2);
  EXPECT_FALSE(written()) << "nothing differs any more";
}

TEST_F(NodePublisherTest, the_ledger_annotation_of_an_earlier_program_is_kept) {
  json labelled = node();
  labelled["metadata"]["annotations"]["carve.dev/ledger"] =
      api::write(kubernetes::NodeLedger{.parts = {{.slice = "1",
                                                   .pod = "a/gone",
                                                   .uid = "u",
                                                   .container = "main",
                                                   .device = *parse_uuid(AgentApiFake::uuid),
                                                   .memory = 2048}}});
  server.put(nodes, labelled);
  agent.state.slices = {slice_of("1", "gone", "u")};
  agent.state.slices[0].parts.push_back({.uuid = AgentApiFake::uuid, .quota_bytes = 2048});
  std::vector<bool> seen;
  server.on_change = [&](const kubernetes::ApiServerFake::Change& change) {
    if (change.collection == nodes && change.after)
      seen.push_back((*change.after)["metadata"]["annotations"].contains("carve.dev/ledger"));
  };
  begin();
  publisher->agent_reported(*agent.report());
  time.run_for(5 * second_ns);
  EXPECT_THAT(seen, testing::Not(testing::Contains(false)));
  EXPECT_FALSE(seen.empty());
}

TEST_F(NodePublisherTest, a_static_pod_that_requests_a_slice_gets_an_event) {
  const auto put = [&](const char* name, bool is_mirror, const json& limits) {
    json pod = {
        {"metadata", {{"name", name}, {"namespace", "a"}}},
        {"spec",
         {{"nodeName", "n1"}, {"containers", {{{"resources", {{"limits", limits}}}, {"name", "c"}}}}}},
        {"status", {{"phase", "Running"}}}};
    if (is_mirror) pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "x";
    server.put(pods, pod);
  };
  put("static", true, {{"carve.dev/memory", "1Gi"}});
  put("plain", true, {{"cpu", "1"}, {"nvidia.com/gpu", "1"}});
  put("created", false, {{"carve.dev/memory", "1Gi"}});
  begin();
  put("later", true, {{"aliyun.com/gpu-mem", "1"}});
  time.run_for(5 * second_ns);
  std::vector<std::string> about;
  for (const EventNote& note : notes)
    if (note.reason == "CarveNoSlice") about.push_back(note.about.name + ": " + note.note.substr(0, 36));
  EXPECT_THAT(about, ElementsAre("static: container c requests carve.dev/memor",
                                 "later: container c requests aliyun.com/gpu-"));
  EXPECT_LE(std::ranges::count(server.requests(), "GET /api/v1/namespaces/a/pods/static"), 1);
}

TEST_F(NodePublisherTest, incidents_on_the_node_are_reported) {
  begin();
  notes.clear();
  agent.state.devices[0].health = {.state = HealthState::lost, .reason = "lost from the bus"};
  publisher->agent_reported(*agent.report());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].reason, "CarveDeviceLost");
  EXPECT_EQ(notes[0].about.kind, "Node");
  EXPECT_EQ(notes[0].about.uid, node()["metadata"]["uid"].get<std::string>());
  notes.clear();
  json other = node();
  other["status"]["allocatable"]["nvidia.com/gpu"] = "1";
  server.put(nodes, other);
  time.run_for(10 * second_ns);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].reason, "CarveOtherPlugin");
}

TEST_F(NodePublisherTest, an_event_is_sent_once) {
  EventSender events(client, "n1", [] { return 1'764'003'600'000'000'000; });
  EventNote note{
      .about = {"Pod", "a", "p", "u"}, .reason = "CarveRefused", .action = "StartContainer", .note = "x"};
  for (int i = 0; i < 6; ++i) {
    note.note = i % 2 == 0 ? "x" : "y";
    events.send(note);
  }
  time.run_for(5 * second_ns);
  EXPECT_EQ(server.all("/apis/events.k8s.io/v1/events").size(), 2u);
}

}  // namespace
}  // namespace carve::kubernetes::node
