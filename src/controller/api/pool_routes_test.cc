#include <gmock/gmock.h>

#include <algorithm>

#include "controller/api/controller_routes.h"
#include "controller/api/testing/routes_fake.h"
#include "controller/api/testing/views_fake.h"
#include "controller/nodes/node_rules.h"
#include "wire/api/json.h"
#include "wire/api/warning.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr uint32_t pool_operators[] = {0};

struct TwoNodes final : ViewsFake {
  TwoNodes() {
    known = {{.record = {.name = "n1", .socket = "/run/a"}, .reachability = Reachability::reachable},
             {.record = {.name = "n2"}, .reachability = Reachability::unreachable, .problem = "no agent"}};
  }
};

struct PoolRoutes : testing::Test {
  TwoNodes views;
  JournalFake journal;
  JournaledRegistry objects{journal, {}, 0};
  TokenBook tokens{journal, {}};
  ControllerRoutes routes{{.views = views,
                           .audit = [](const AuditLine&) {},
                           .objects = objects,
                           .tokens = tokens,
                           .node_actions = &views}};

  PoolRoutes() {
    for (const char* name : {"n1", "n2"}) {
      const objects::NodeStatus status{
          .state = NodePhase::running, .gpus = 2, .memory_unit = {.desired = "1GiB", .effective = "1GiB"}};
      EXPECT_TRUE(objects.add({.key = node_key(name), .spec = objects::NodeSpec{}, .status = status}));
    }
  }
  std::string ask(unsigned status, const std::string& method, const std::string& target,
                  const std::string& text = "", uint32_t uid = 0, const http::Headers& headers = {}) {
    const auto response = routes.answer(request_of(method, target, text, headers),
                                        http::Caller::user(uid, {5, 1}, pool_operators));
    const std::string body = std::get<std::string>(response.content);
    EXPECT_EQ(response.status, status) << method << " " << target << ": " << body;
    return body;
  }
  void set_policy(const std::string& node, const std::string& policy) {
    EXPECT_TRUE(objects.update(node_key(node), [&](Object& object) -> Outcome<void> {
      objects::NodeStatus status = node_status(object);
      status.policy = {.desired = policy, .effective = policy};
      object.status = status;
      return {};
    }));
  }
  void apply_pool(const std::string& spec) {
    ask(201, "POST", "/v1/documents",
        R"({"apiVersion":"carve.dev/v1","kind":"Pool","metadata":{"name":"p"},"spec":)" + spec + "}");
  }
};

TEST_F(PoolRoutes, nodes_are_those_of_the_command_line_with_the_state_of_their_agents) {
  const auto list = api::read<objects::NodeList>(ask(200, "GET", "/v1/nodes"), api::Reading::lenient);
  ASSERT_TRUE(list) << list.error();
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->items[0].status.agent->socket, "/run/a");
  EXPECT_EQ(list->items[1].status.agent->problem, "no agent");
  EXPECT_THAT(ask(404, "GET", "/v1/nodes/n3"), HasSubstr("there is no node n3; the nodes are n1, n2"));
}

TEST_F(PoolRoutes, only_operators_may_change_nodes_and_pools) {
  const char* pool = R"({"apiVersion":"carve.dev/v1","kind":"Pool","metadata":{"name":"p"},"spec":{}})";
  ask(403, "POST", "/v1/documents", pool, 1000);
  apply_pool("{}");
  ask(403, "DELETE", "/v1/pools/p", "", 1000);
  for (const char* verb : {"start", "stop", "restart", "drain", "end-slices"})
    ask(403, "POST", std::string("/v1/nodes/n1/") + verb, "", 1000);
  ask(403, "PATCH", "/v1/nodes/n1", R"({"spec":{"schedulable":false}})", 1000);
  ask(200, "GET", "/v1/pools/p", "", 1000);
}

TEST_F(PoolRoutes, a_patch_of_a_node_is_parsed_strictly_and_applied_completely_or_not_at_all) {
  EXPECT_THAT(ask(422, "PATCH", "/v1/nodes/n1", R"({"spec":{"schedulabel":false}})"),
              HasSubstr("unknown field"));
  EXPECT_THAT(ask(422, "PATCH", "/v1/nodes/n1", R"({"spec":{"pool":"x"}})"),
              HasSubstr("there is no pool 'x'"));
  EXPECT_THAT(ask(400, "PATCH", "/v1/nodes/n1", ""), HasSubstr("carve:invalid-argument"));
  for (const char* text : {"[]", "7", "null", R"({"metadata":7})", R"({"metadata":{"labels":[]}})",
                           R"({"metadata":{"labels":{"a":7}}})"})
    EXPECT_THAT(ask(422, "PATCH", "/v1/nodes/n1", text), HasSubstr("carve:invalid"));
  ask(422, "PATCH", "/v1/nodes/n1",
      R"({"metadata":{"labels":{"zone":"a","gpuMemoryUnit":"64MiB"}},"spec":{"schedulable":false}})");
  EXPECT_TRUE(objects.find(node_key("n1"))->labels.empty());
  EXPECT_EQ(views.polls, 0u);
  ask(200, "PATCH", "/v1/nodes/n1", R"({"metadata":{"labels":{"zone":"a"}},"spec":{"schedulable":false}})");
  EXPECT_THAT(node_spec(*objects.find(node_key("n1"))).cordoned, HasSubstr("root since 2027-"));
  EXPECT_EQ(views.polls, 1u);
}

TEST_F(PoolRoutes, a_system_label_can_be_set_and_removed_but_not_edited) {
  const auto patch = [&](unsigned status, const char* labels) {
    return ask(status, "PATCH", "/v1/nodes/n1", fmt::format(R"({{"metadata":{{"labels":{}}}}})", labels));
  };
  patch(200, R"({"ack.node.gpu.schedule":"cgpu"})");
  patch(200, R"({"carve.dev/mode":"memory"})");
  const std::string refused = patch(409, R"({"ack.node.gpu.schedule":"share"})");
  EXPECT_THAT(refused, HasSubstr("carve:immutable"));
  EXPECT_THAT(refused, HasSubstr("ack.node.gpu.schedule is a system label: its value 'memory' on node n1"));
  patch(200, R"({"vke.node.gpu.schedule":null})");
  EXPECT_THAT(patch(409, R"({"carve.dev/mode":"none"})"), HasSubstr("was removed from node n1"));
}

TEST_F(PoolRoutes, a_change_of_the_memory_unit_is_rejected_while_slices_in_units_run) {
  views.in_units = {"a", "b\""};
  const char* body = R"({"metadata":{"labels":{"gpuMemoryUnit":"128MiB"}}})";
  const std::string refused = ask(409, "PATCH", "/v1/nodes/n1", body);
  EXPECT_THAT(refused, HasSubstr("carve:blocked"));
  EXPECT_THAT(refused, HasSubstr(R"("blockedBy":["a","b\""])"));
  ask(200, "PATCH", "/v1/nodes/n1?whenFree=true", body);
  views.in_units.clear();
  ask(200, "PATCH", "/v1/nodes/n2", body);
}

TEST_F(PoolRoutes, a_pool_with_nodes_cannot_be_deleted) {
  apply_pool("{}");
  ask(200, "PATCH", "/v1/nodes/n1", R"({"spec":{"pool":"p"}})");
  EXPECT_THAT(ask(409, "DELETE", "/v1/pools/p"), HasSubstr("pool p still has the nodes n1"));
  ask(200, "PATCH", "/v1/nodes/n1", R"({"spec":{"pool":""}})");
  ask(200, "DELETE", "/v1/pools/p");
  ask(404, "GET", "/v1/pools/p/slicing");
}

TEST_F(PoolRoutes, services_of_a_pool_that_cannot_be_sliced_are_rejected_with_the_checks_message) {
  const char* service = R"({"apiVersion":"carve.dev/v1","kind":"Service","metadata":{"name":"a"},
    "spec":{"pool":"p","gpu":{"memory":"1GiB"},"run":{"command":["serve"]}}})";
  EXPECT_THAT(ask(422, "POST", "/v1/documents", service), HasSubstr("leave the field out to use any node"));
  apply_pool("{}");
  const std::string message = "pool 'p' has no GPU: its GPU column is 0";
  EXPECT_THAT(ask(200, "GET", "/v1/pools/p/slicing"), HasSubstr(message));
  const std::string refused = ask(409, "POST", "/v1/documents", service);
  EXPECT_THAT(refused, HasSubstr("carve:slicing-unavailable"));
  EXPECT_THAT(refused, HasSubstr(message));
  ask(200, "PATCH", "/v1/nodes/n1", R"({"spec":{"pool":"p"}})");
  apply_pool(R"({"sharing":false})");
  EXPECT_THAT(ask(409, "POST", "/v1/documents", service), HasSubstr("GPU sharing is not enabled for pool p"));
  apply_pool(R"({"sharing":true})");
  ask(201, "POST", "/v1/documents", service);
}

TEST_F(PoolRoutes, nodes_and_pools_are_not_changed_if_their_version_differs) {
  apply_pool("{}");
  http::Headers stale;
  stale.add("If-Match", "\"99\"");
  const uint64_t before = objects.version();
  EXPECT_THAT(ask(412, "DELETE", "/v1/pools/p", "", 0, stale), HasSubstr("pool p has version"));
  ask(412, "PATCH", "/v1/nodes/n1", R"({"spec":{"pool":"p"}})", 0, stale);
  ask(412, "POST", "/v1/nodes/n1/stop", "", 0, stale);
  ask(412, "POST", "/v1/nodes/n1/restart?force=true", "", 0, stale);
  ask(412, "POST", "/v1/nodes/n1/drain", "", 0, stale);
  EXPECT_TRUE(views.ended.empty());
  EXPECT_EQ(objects.version(), before);
}

TEST_F(PoolRoutes, a_modified_document_is_rejected_by_the_pool_like_a_new_one) {
  const auto modify = [&](unsigned status, const char* change) {
    return ask(status, "POST", "/v1/services/a/modify", fmt::format(R"({{"changes":["{}"]}})", change));
  };
  ask(201, "POST", "/v1/documents",
      R"({"metadata":{"name":"a","gpu_memory":1},"containers":[{"command":"serve"}]})");
  EXPECT_THAT(modify(422, "metadata.resource=p"), HasSubstr("there is no pool 'p'"));
  apply_pool(R"({"type":"public"})");
  const std::string refused = modify(409, "metadata.resource=p");
  EXPECT_THAT(refused, HasSubstr("carve:slicing-unavailable"));
  EXPECT_THAT(refused, HasSubstr("pool 'p' is of type public: GPU slicing needs"));
  apply_pool(R"({"bestEffort":"refuse"})");
  ask(200, "PATCH", "/v1/nodes/n1", R"({"spec":{"pool":"p"}})");
  EXPECT_THAT(modify(409, "metadata.resource=p"), HasSubstr("refuses slices without a share"));
  apply_pool("{}");
  EXPECT_THAT(modify(200, "metadata.resource=p"), HasSubstr(R"("pool":"p")"));
}

TEST_F(PoolRoutes, a_pool_may_reject_services_without_a_share) {
  const auto service = [](const char* gpu) {
    return fmt::format(R"({{"apiVersion":"carve.dev/v1","kind":"Service","metadata":{{"name":"a"}},
      "spec":{{"pool":"p","gpu":{{{}}},"run":{{"command":["serve"]}}}}}})",
                       gpu);
  };
  apply_pool(R"({"bestEffort":"refuse"})");
  ask(200, "PATCH", "/v1/nodes/n1", R"({"spec":{"pool":"p"}})");
  EXPECT_THAT(
      ask(409, "POST", "/v1/documents", service(R"("memory":"1GiB")")),
      HasSubstr("pool p refuses slices without a share of compute (bestEffort: refuse); add a share"));
  ask(201, "POST", "/v1/documents", service(R"("memory":"1GiB","share":"30%")"));
  ask(409, "POST", "/v1/documents", service(R"("memory":"1GiB")"));
  ask(201, "POST", "/v1/documents", service(R"("exclusive":true)"));
  apply_pool("{}");
  ask(201, "POST", "/v1/documents", service(R"("memory":"1GiB")"));
  apply_pool(R"({"bestEffort":"refuse"})");
  ask(201, "POST", "/v1/documents", service(R"("memory":"2GiB")"));
}

TEST_F(PoolRoutes, a_document_of_a_node_sets_the_fields_that_it_contains) {
  const auto node = [](const char* rest) {
    return fmt::format(R"({{"apiVersion":"carve.dev/v1","kind":"Node","metadata":{{"name":"n1"{}}})", rest);
  };
  ask(200, "PATCH", "/v1/nodes/n1", R"({"spec":{"schedulable":false}})");
  apply_pool("{}");
  const std::string applied = ask(
      201, "POST", "/v1/documents",
      node(R"(,"labels":{"zone":"a","gpuMemoryUnit":"1GiB"}},"spec":{"pool":"p","instanceType":"ml.x"})"));
  EXPECT_THAT(applied, HasSubstr(R"("action":"configured")"));
  const Pointer kept = objects.find(node_key("n1"));
  EXPECT_EQ(kept->labels.at("zone"), "a");
  EXPECT_EQ(kept->labels.at("carve.dev/memory-unit"), "1GiB");
  EXPECT_EQ(node_spec(*kept).pool, "p");
  EXPECT_FALSE(node_spec(*kept).schedulable) << "the document does not name it";
  ask(201, "POST", "/v1/documents", node(R"(},"spec":{"schedulable":true})"));
  EXPECT_TRUE(node_spec(*objects.find(node_key("n1"))).schedulable);
  EXPECT_EQ(node_spec(*objects.find(node_key("n1"))).pool, "p");
  EXPECT_THAT(ask(201, "POST", "/v1/documents", node(R"(},"spec":{"stopped":true})")),
              HasSubstr("spec.stopped is ignored in a document; use the corresponding carve command"));
}

TEST_F(PoolRoutes, a_document_of_a_node_is_rejected_like_a_patch) {
  const auto node = [](const char* name, const char* rest) {
    return fmt::format(R"({{"apiVersion":"carve.dev/v1","kind":"Node","metadata":{{"name":"{}"{}}})", name,
                       rest);
  };
  const char* labels = R"(,"labels":{"carve.dev/mode":"memory"}})";
  ask(403, "POST", "/v1/documents", node("n1", labels), 1000);
  ask(201, "POST", "/v1/documents", node("n1", labels));
  EXPECT_THAT(
      ask(409, "POST", "/v1/documents", node("n1", R"(,"labels":{"ack.node.gpu.schedule":"share"}})")),
      HasSubstr("carve:immutable"));
  EXPECT_THAT(ask(404, "POST", "/v1/documents", node("n9", "}")), HasSubstr("there is no node n9"));
  EXPECT_THAT(ask(422, "POST", "/v1/documents", node("n1", R"(},"spec":{"pool":"x"})")),
              HasSubstr("there is no pool 'x'"));
  ask(422, "POST", "/v1/documents", node("n1", R"(},"spec":{"schedulabel":true})"));
}

TEST_F(PoolRoutes, the_pool_determines_the_unit_of_gpu_memory_in_pai_eas) {
  const char* eas = R"({"metadata":{"name":"a","resource":"p","gpu_memory":1},
    "containers":[{"command":"serve"}]})";
  const auto with_devices = [&](const char* name) {
    for (NodeObservation& node : views.known)
      if (node.record.name == name) node.report.devices = {{.usable_bytes = 24'000'000'000}};
  };
  apply_pool("{}");
  with_devices("n1");
  with_devices("n2");
  const auto join = [&](const char* name, const char* type) {
    ask(200, "PATCH", std::string("/v1/nodes/") + name,
        fmt::format(R"({{"spec":{{"pool":"p","instanceType":"{}"}}}})", type));
  };
  join("n1", "ml.gu7i.c8m30.1-gu30");
  ask(201, "POST", "/v1/documents", eas);
  EXPECT_THAT(ask(200, "GET", "/v1/services/a"), HasSubstr(R"("memory":"1GB")"));
  join("n2", "ecs.gn7i-c8g1.2xlarge");
  EXPECT_THAT(
      ask(422, "POST", "/v1/documents", eas),
      HasSubstr("pool p has ml.* and ecs.* nodes: gpu_memory would be in GB on one and in GiB on the other; "
                "set metadata.resource to a pool of one kind"));
  std::string named = eas;
  named.insert(1, R"("cloud":{"computing":{"instances":[{"type":"ecs.gn7i-c8g1.2xlarge"}]}},)");
  EXPECT_THAT(
      ask(422, "POST", "/v1/documents", named),
      HasSubstr("pool p has a node of type ml.gu7i.c8m30.1-gu30, on which gpu_memory would be in GB"));
  join("n1", "ecs.gn7i-c8g1.2xlarge");
  ask(201, "POST", "/v1/documents", named);
  EXPECT_THAT(ask(200, "GET", "/v1/services/a"), HasSubstr(R"("memory":"1GiB")"));
}

TEST_F(PoolRoutes, an_elastic_pool_rejects_applications_with_part_of_a_device) {
  apply_pool(R"({"type":"vci"})");
  const char* application = R"({"apiVersion":"carve.dev/v1","kind":"Application","metadata":{"name":"a"},
    "spec":{"pool":"p","gpu":{"type":"mGPU","memory":"4096","compute":"0.5"},"run":{"command":["serve"]}}})";
  EXPECT_THAT(ask(422, "POST", "/v1/documents", application),
              HasSubstr("elastic containers (VCI) do not support mGPU: only node (ECS) deployments do"));
}

TEST_F(PoolRoutes, a_pool_that_stops_synchronising_returns_a_warning) {
  apply_pool(R"({"labelSync":true})");
  EXPECT_THAT(ask(201, "POST", "/v1/documents",
                  R"({"apiVersion":"carve.dev/v1","kind":"Pool","metadata":{"name":"p"},"spec":{}})"),
              HasSubstr("existing nodes may keep a compute policy that differs from the pool's"));
}

// A service that needs fixed-share runs on n1; n2 already has another policy.
TEST_F(PoolRoutes, a_change_of_a_nodes_policy_warns_if_a_service_needs_the_old_one) {
  set_policy("n1", "fixed-share");
  set_policy("n2", "native-burst-share");
  ask(201, "POST", "/v1/documents", R"({"apiVersion":"carve.dev/v1","kind":"Service","metadata":{"name":"a"},
    "spec":{"gpu":{"memory":"1GiB","share":"30%","policy":"fixed-share"},"run":{"command":["serve"]}}})");
  const char* label = R"({"metadata":{"labels":{"carve.dev/compute-policy":"native-burst-share"}}})";
  const auto response = routes.answer(request_of("PATCH", "/v1/nodes/n1", label, {}),
                                      http::Caller::user(0, {5, 1}, pool_operators));
  EXPECT_EQ(response.status, 200u);
  const auto warning = std::ranges::find(response.headers, "Warning", &http::Header::name);
  ASSERT_NE(warning, response.headers.end());
  EXPECT_THAT(api::warning_text(warning->value).value_or(""),
              HasSubstr("no node has the policy fixed-share once node n1 has native-burst-share: the "
                        "replicas of a keep running"));
  EXPECT_THAT(ask(201, "POST", "/v1/documents",
                  R"({"apiVersion":"carve.dev/v1","kind":"Node","metadata":{"name":"n1",
                     "labels":{"carve.dev/compute-policy":"native-burst-share"}},"spec":{}})"),
              HasSubstr("the replicas of a keep running"));
}

TEST_F(PoolRoutes, a_change_of_a_pools_policy_warns_if_a_service_needs_the_old_one) {
  for (const char* name : {"n1", "n2"}) set_policy(name, "fixed-share");
  apply_pool(R"({"labelSync":true})");
  ask(200, "PATCH", "/v1/nodes/n1", R"({"spec":{"pool":"p"}})");
  ask(201, "POST", "/v1/documents", R"({"apiVersion":"carve.dev/v1","kind":"Service","metadata":{"name":"a"},
    "spec":{"pool":"p","gpu":{"memory":"1GiB","policy":"fixed-share"},"run":{"command":["serve"]}}})");
  const auto applied = [&](const char* spec) {
    return ask(
        201, "POST", "/v1/documents",
        fmt::format(R"({{"apiVersion":"carve.dev/v1","kind":"Pool","metadata":{{"name":"p"}},"spec":{}}})",
                    spec));
  };
  EXPECT_THAT(applied(R"({"labels":{"carve.dev/compute-policy":"native-burst-share"}})"),
              Not(HasSubstr("run on")))
      << "existing nodes keep their policy";
  EXPECT_THAT(applied(R"({"labelSync":true,"labels":{"carve.dev/compute-policy":"native-burst-share"}})"),
              HasSubstr("once node n1 has native-burst-share: the replicas of a keep running"));
}

TEST_F(PoolRoutes, a_drained_node_stays_drained_until_it_is_uncordoned) {
  ask(200, "POST", "/v1/nodes/n1/drain");
  EXPECT_TRUE(node_spec(*objects.find(node_key("n1"))).draining);
  EXPECT_FALSE(node_spec(*objects.find(node_key("n1"))).schedulable);
  EXPECT_FALSE(node_spec(*objects.find(node_key("n2"))).draining);
  ask(200, "PATCH", "/v1/nodes/n1", R"({"spec":{"schedulable":true}})");
  EXPECT_FALSE(node_spec(*objects.find(node_key("n1"))).draining);
  EXPECT_EQ(refusal_of(*objects.find(node_key("n1"))), "");
}

TEST_F(PoolRoutes, slices_can_be_ended_only_on_a_cordoned_node) {
  ask(409, "POST", "/v1/nodes/n1/end-slices");
  ask(200, "PATCH", "/v1/nodes/n1", R"({"spec":{"schedulable":false}})");
  ask(200, "POST", "/v1/nodes/n1/end-slices");
  ask(200, "POST", "/v1/nodes/n2/restart?force=true");
  ask(400, "POST", "/v1/nodes/n2/restart?forced=true");
  EXPECT_THAT(views.ended, ElementsAre("n1", "n2"));
  EXPECT_TRUE(node_spec(*objects.find(node_key("n2"))).restarting);
}

}  // namespace
}  // namespace carve::controller
