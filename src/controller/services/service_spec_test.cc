#include "controller/services/service_spec.h"

#include <gtest/gtest.h>

#include "controller/objects/service_form.h"

namespace carve::controller {
namespace {

objects::ServiceSpec spec() {
  return {.gpu = objects::Gpu{.memory = "4GiB", .share = "20%"}, .run = {.command = {"serve"}}};
}

TEST(ServiceSpec, has_a_revision_that_depends_neither_on_the_number_of_replicas_nor_on_the_rollout) {
  objects::ServiceSpec other = spec();
  other.replicas = 7;
  other.stopped = true;
  other.update.max_surge = 3;
  other.autoscale = objects::Autoscale{.min = 1, .max = 3};
  other.source.document = "{}";
  EXPECT_EQ(revision_spec(other), revision_spec(spec()));
  other.run.env["A"] = "b";
  EXPECT_NE(revision_spec(other), revision_spec(spec()));
}

TEST(ServiceSpec, is_resized_only_if_nothing_else_differs) {
  objects::ServiceSpec other = spec();
  other.gpu->memory = "6GiB";
  EXPECT_TRUE(differ_in_size_alone(spec(), other));
  other.gpu->share = "30%";
  EXPECT_TRUE(differ_in_size_alone(spec(), other));
  other.gpu->share = "";
  EXPECT_FALSE(differ_in_size_alone(spec(), other)) << "compute is no longer limited";
  other = spec();
  other.gpu->memory = "6GiB";
  other.run.command = {"other"};
  EXPECT_FALSE(differ_in_size_alone(spec(), other));
  other.gpu.reset();
  EXPECT_FALSE(differ_in_size_alone(spec(), other));
}

TEST(ServiceSpec, passes_the_port_and_the_identity_to_the_program) {
  objects::ServiceSpec with_environment = spec();
  with_environment.run.env = {{"PORT", "1"}, {"A", "b"}};
  const ProgramStart start =
      program_start({.key = {.name = "a"}, .owner_uid = 7}, with_environment,
                    {.slice = "a-2-1", .revision = 2, .replica = 1, .node = "n", .port = 20001}, 3);
  EXPECT_EQ(start.env.at("PORT"), "20001");
  EXPECT_EQ(start.env.at("A"), "b");
  EXPECT_EQ(start.env.at("CARVE_SERVICE"), "a");
  EXPECT_EQ(start.env.at("CARVE_REPLICA"), "1");
  EXPECT_EQ(start.owner_uid, 7u);
  EXPECT_EQ(start.attempt, 3u);
  EXPECT_EQ(start.node, "n");
}

}  // namespace
}  // namespace carve::controller
