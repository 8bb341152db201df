#include "controller/kubernetes/cluster_registry.h"

#include <gmock/gmock.h>

#include "controller/kubernetes/testing/cluster_scenario.h"
#include "objects/queue_object.h"

namespace carve::controller {
namespace {

using kubernetes::second_ns;
using testing::HasSubstr;
using json = nlohmann::json;

Object service(const std::string& name, uint32_t replicas = 1) {
  Object out;
  out.key.name = name;
  out.account = "research";
  out.owner_uid = 1000;
  out.labels = {{"team", "a"}};
  objects::ServiceSpec spec{.replicas = replicas, .run = {.command = {"serve"}, .image = "i"}};
  out.spec = spec;
  return out;
}

void set_replicas(Object& object, uint32_t replicas) {
  auto spec = object.spec.as<objects::ServiceSpec>();
  spec.replicas = replicas;
  object.spec.set(std::move(spec));
}

struct Registry : testing::Test {
  ClusterScenario scenario;
  std::unique_ptr<ClusterReplica> replica = scenario.replica("a");
  ClusterRegistry& objects = replica->objects;
  const ObjectKey web{.name = "web"};

  Registry() { scenario.run_for(3 * second_ns); }
  Outcome<ObjectRegistry::Pointer> scale(uint32_t replicas, std::optional<uint64_t> expected = std::nullopt) {
    return objects.update(
        web,
        [&](Object& object) -> Outcome<void> {
          set_replicas(object, replicas);
          return {};
        },
        expected);
  }
};

TEST_F(Registry, adds_an_object_as_a_custom_resource) {
  const auto added = objects.add(service("web"));
  ASSERT_TRUE(added) << added.error().message;
  const json& custom = *scenario.custom("web");
  EXPECT_EQ((*added)->uid, custom["metadata"]["uid"].get<std::string>());
  EXPECT_EQ(custom["metadata"]["labels"], (json{{"team", "a"}, {account_label, "research"}}));
  EXPECT_EQ(custom["metadata"]["annotations"], (json{{owner_uid_annotation, "1000"}}));
  EXPECT_EQ(custom["spec"]["run"], (json{{"command", {"serve"}}, {"image", "i"}}))
      << "empty fields are left out";
  EXPECT_EQ(objects.find(web)->account, "research");
  EXPECT_EQ(objects.find(web)->owner_uid, 1000u);
  EXPECT_EQ(objects.find(web)->labels, (std::map<std::string, std::string>{{"team", "a"}}));
  EXPECT_EQ(objects.add(service("web")).error().kind, FailureKind::already_exists);
}

TEST_F(Registry, changes_only_the_fields_that_differ) {
  ASSERT_TRUE(objects.add(service("web")));
  const auto changed = scale(3);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ((*scenario.custom("web"))["spec"]["replicas"], 3);
  EXPECT_EQ((*changed)->generation, 2u);
  const size_t before = scenario.writes();
  ASSERT_TRUE(scale(3));
  EXPECT_EQ(scenario.writes(), before) << "nothing changed";
}

TEST_F(Registry, makes_a_change_again_if_another_program_was_faster) {
  ASSERT_TRUE(objects.add(service("web")));
  json custom = *scenario.custom("web");
  custom["spec"]["port"] = 8000;
  bool is_changed = false;
  const auto changed = objects.update(web, [&](Object& object) -> Outcome<void> {
    if (!std::exchange(is_changed, true)) scenario.server.put(custom_services, custom);
    set_replicas(object, 4);
    return {};
  });
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ((*scenario.custom("web"))["spec"]["replicas"], 4);
  EXPECT_EQ((*scenario.custom("web"))["spec"]["port"], 8000) << "the other change is kept";
}

TEST_F(Registry, rejects_a_change_of_an_older_version) {
  ASSERT_TRUE(objects.add(service("web")));
  EXPECT_EQ(scale(3, 1).error().kind, FailureKind::stale);
  scenario.run_for(5 * second_ns);  // The status is written, so the version stays.
  EXPECT_TRUE(scale(3, objects.find(web)->version));
}

TEST_F(Registry, reports_that_a_change_without_a_response_may_have_been_made) {
  scenario.server.add_fault(
      {.kind = kubernetes::ApiFault::Kind::lose_answer, .method = "POST", .target = "services"});
  const auto added = objects.add(service("web"));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().kind, FailureKind::unavailable);
  EXPECT_THAT(added.error().message, HasSubstr("the change may have been made"));
  scenario.run_for(2 * second_ns);
  EXPECT_NE(objects.find(web), nullptr) << "the watch has delivered it";
}

TEST_F(Registry, names_how_many_objects_were_applied_before_an_error) {
  scenario.server.add_fault({.method = "POST", .target = "queues", .status = 403});
  Object queue{.key = {.kind = objects::Kind::queue, .name = "train"}};
  queue.spec = objects::QueueSpec();
  const auto applied =
      objects.apply({{.added = service("web"), .change = nullptr}, {.added = queue, .change = nullptr}});
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().kind, FailureKind::permission_denied);
  EXPECT_THAT(applied.error().message, HasSubstr("the 1 objects before it were applied"));
}

TEST_F(Registry, does_not_show_a_deleted_object_again) {
  Object queue{.key = {.kind = objects::Kind::queue, .name = "train"}};
  queue.spec = objects::QueueSpec();
  ASSERT_TRUE(objects.add(queue));
  const uint64_t version = objects.version();
  ASSERT_TRUE(objects.remove(queue.key));
  EXPECT_EQ(objects.find(queue.key), nullptr);
  scenario.run_for(10 * second_ns);
  EXPECT_EQ(objects.find(queue.key), nullptr);
  const auto changes = objects.changes_behind(version);
  ASSERT_TRUE(changes);
  EXPECT_EQ(std::ranges::count(*changes, ChangeKind::added, &ObjectChange::kind), 0);
  EXPECT_EQ(std::ranges::count(*changes, ChangeKind::deleted, &ObjectChange::kind), 1);
}

TEST_F(Registry, numbers_changes_in_the_order_in_which_they_are_seen) {
  std::vector<uint64_t> versions;
  for (unsigned i = 0; i < 5; ++i) {
    scenario.apply(fmt::format("web-{}", i), ClusterScenario::spec(1, "serve"));
    scenario.run_for(second_ns);
  }
  const auto changes = objects.changes_behind(0);
  ASSERT_TRUE(changes);
  for (const ObjectChange& change : *changes) versions.push_back(change.version);
  EXPECT_TRUE(std::ranges::is_sorted(versions));
  EXPECT_EQ(std::ranges::adjacent_find(versions), versions.end());
  EXPECT_GE(versions.size(), 5u);
}

TEST_F(Registry, survives_hostile_custom_resources) {
  for (const json& hostile :
       {json::array(), json{{"metadata", 1}}, json{{"metadata", {{"name", "a"}, {"uid", "b"}}}},
        json{{"metadata", {{"name", 1}, {"uid", "b"}, {"namespace", "n"}, {"resourceVersion", "1"}}}},
        json{{"metadata", {{"name", "a"}, {"uid", "b"}, {"namespace", "n"}, {"resourceVersion", "-1"}}}}}) {
    EXPECT_FALSE(read_custom_object(objects::Kind::service, api::Json::parse(hostile.dump()))) << hostile;
  }
  const json strange = {{"metadata",
                         {{"name", "a"},
                          {"uid", "b"},
                          {"namespace", "n"},
                          {"resourceVersion", "1"},
                          {"labels", {{"a", 1}}},
                          {"generation", "x"}}},
                        {"spec", {{"replicas", "many"}, {"run", {1, 2}}}},
                        {"status", {{"replicas", "x"}, {"conditions", 3}}}};
  const auto read = read_custom_object(objects::Kind::service, api::Json::parse(strange.dump()));
  ASSERT_TRUE(read);
  EXPECT_GE(read->errors.size(), 2u);
  objects.observe(*read);
  EXPECT_EQ(objects.find({.namespace_ = "n", .name = "a"}), nullptr);
}

}  // namespace
}  // namespace carve::controller
