#include "controller/nodes/policy_change.h"

#include <gmock/gmock.h>

#include "controller/nodes/node_rules.h"
#include "objects/service_object.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Pointer = ObjectRegistry::Pointer;

Pointer node(const char* name, const char* policy, const char* pool = "", bool is_per_slice = false) {
  return std::make_shared<const Object>(
      Object{.key = node_key(name),
             .spec = objects::NodeSpec{.pool = pool},
             .status = objects::NodeStatus{.policy = {.desired = policy, .effective = policy},
                                           .has_policy_per_slice = is_per_slice}});
}

Pointer service(const std::string& name, const char* policy, const char* pool = "") {
  objects::ServiceSpec spec{.pool = pool};
  spec.gpu = objects::Gpu{.policy = policy};
  return std::make_shared<const Object>(
      Object{.key = {objects::Kind::service, "default", name}, .spec = spec});
}

constexpr const char* fixed = "fixed-share";
constexpr const char* native = "native-burst-share";

TEST(PolicyChange, names_the_workloads_that_lose_their_last_node) {
  EXPECT_THAT(policy_warnings({"n1"}, native, {node("n1", fixed), node("n2", native)},
                              {service("b", fixed), service("a", fixed), service("c", native)}),
              ElementsAre(HasSubstr("no node has the policy fixed-share once node n1 has native-burst-share: "
                                    "the replicas of a, b keep running")));
}

TEST(PolicyChange, gives_no_warning_if_another_node_has_the_policy) {
  EXPECT_THAT(policy_warnings({"n1"}, native, {node("n1", fixed), node("n2", fixed)}, {service("a", fixed)}),
              IsEmpty());
  EXPECT_THAT(
      policy_warnings({"n1", "n2"}, native, {node("n1", fixed), node("n2", fixed)}, {service("a", fixed)}),
      ElementsAre(HasSubstr("once nodes n1, n2 have native-burst-share")));
}

TEST(PolicyChange, considers_only_nodes_of_the_workloads_pool) {
  const std::vector<Pointer> nodes = {node("n1", fixed, "p"), node("n2", fixed, "q")};
  EXPECT_THAT(policy_warnings({"n1"}, native, nodes, {service("a", fixed, "p")}), testing::SizeIs(1));
  EXPECT_THAT(policy_warnings({"n1"}, native, nodes, {service("a", fixed, "q")}), IsEmpty());
  EXPECT_THAT(policy_warnings({"n1"}, native, nodes, {service("a", fixed)}), IsEmpty());
}

TEST(PolicyChange, gives_no_warning_about_policies_that_it_does_not_change) {
  EXPECT_THAT(policy_warnings({"n1"}, fixed, {node("n1", fixed)}, {service("a", fixed)}), IsEmpty());
  EXPECT_THAT(policy_warnings({"n1"}, native, {node("n1", native)}, {service("a", fixed)}), IsEmpty())
      << "it was so before";
  EXPECT_THAT(policy_warnings({"n1"}, native, {node("n1", fixed, "", true)}, {service("a", fixed)}),
              IsEmpty())
      << "each slice has a policy of its own there";
  EXPECT_THAT(policy_warnings({"n1"}, native, {node("n1", fixed)}, {service("a", "")}), IsEmpty());
}

TEST(PolicyChange, names_at_most_five_workloads) {
  std::vector<Pointer> services;
  for (int i = 1; i <= 7; ++i) services.push_back(service(fmt::format("s{}", i), fixed));
  EXPECT_THAT(policy_warnings({"n1"}, native, {node("n1", fixed)}, services),
              ElementsAre(HasSubstr("s1, s2, s3, s4, s5 and 2 more keep running")));
}

}  // namespace
}  // namespace carve::controller
