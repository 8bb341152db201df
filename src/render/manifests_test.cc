#include "render/manifests.h"

#include <gmock/gmock.h>

#include "dialects/application/application_terms.h"
#include "dialects/eas/eas.h"
#include "dialects/pod/cluster_service.h"
#include "dialects/pod/manifest.h"
#include "objects/rules/service_terms.h"
#include "yaml/documents.h"
#include "yaml/yaml_text.h"

namespace carve::render {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

objects::ServiceSpec rendered_spec(const objects::Gpu& gpu) {
  objects::ServiceSpec out{.gpu = gpu, .run = {.command = {"serve"}, .image = "registry.example/chat:v2"}};
  return out;
}

objects::Metadata named(const char* name) { return {.name = name}; }

// Applies the rendered manifests and returns the service that the first one becomes.
objects::Service applied(const Manifests& manifests) {
  const auto documents = yaml::documents_of(manifests.text);
  EXPECT_TRUE(documents) << manifests.text;
  const auto service = dialects::from_manifest(documents->front());
  EXPECT_TRUE(service) << (service ? "" : service.error().front().message) << "\n" << manifests.text;
  return service ? service->service : objects::Service();
}

// A Kubernetes manifest with a share always implies an isolation.
objects::ReplicaTerms with_isolation(objects::ReplicaTerms terms) {
  if (terms.gpu && terms.gpu->has_share() && !terms.gpu->isolation)
    terms.gpu->isolation = Isolation::memory_and_compute;
  return terms;
}

TEST(Render, rendered_manifests_are_applied_with_the_same_terms) {
  const objects::Gpu rows[] = {
      {.memory = "4GiB", .share = "30%"},
      {.memory = "4097MiB"},
      {.memory = "4GiB", .isolation = "memory"},
      {.memory = "4GiB", .isolation = "none"},
      {.memory = "4GiB", .share = "30%", .isolation = "memory+compute", .policy = "native-burst-share"},
      {.memory = "4GiB", .share = "12.5%", .devices = 2},
      {.memory = "1GiB", .devices = 16},
      {.parts = {{"8GiB", "30%"}, {"4GB", "12.5%"}}},
      {.policy = "fixed-share", .parts = {{"8GiB", ""}, {"50%", ""}, {"2 units", ""}}},
      {.devices = 1, .exclusive = true},
      {.devices = 8, .exclusive = true},
      {.memory = "50%", .share = "30%", .devices = 2},
      {.memory = "50%"},
      {.memory = "16 units"},
      {.memory = "16 units", .share = "30%"},
      {.memory = "8 units", .devices = 2, .policy = "fixed-share"},
  };
  for (const objects::Gpu& gpu : rows) {
    objects::ServiceSpec spec = rendered_spec(gpu);
    spec.cpu = {.request = "500m", .limit = "2"};
    spec.memory = {.request = "512MB", .limit = "1.5GiB"};
    const auto manifests = manifests_of(named("a"), spec);
    ASSERT_TRUE(manifests) << gpu.memory << " " << manifests.error().front().message;
    EXPECT_TRUE(manifests->warnings.empty()) << manifests->warnings.front();
    EXPECT_EQ(with_isolation(*objects::terms_of(applied(*manifests).spec)),
              with_isolation(*objects::terms_of(spec)))
        << manifests->text;
  }
}

TEST(Render, the_program_and_its_environment_survive_a_round_trip) {
  objects::ServiceSpec spec = rendered_spec({.memory = "4GiB", .share = "30%"});
  spec.replicas = 3;
  spec.run.env = {{"yes", "no"}, {"TEXT", "two\nlines: \"quoted\" # and 010"}};
  spec.run.command = {"/bin/sh", "-c", "exec serve --port $PORT"};
  objects::Metadata metadata = named("chat");
  metadata.namespace_ = "research";
  metadata.labels = {{"app", "chat"}, {"version", "010"}};
  metadata.annotations = {{"owner", "true"}};
  const auto manifests = manifests_of(metadata, spec);
  ASSERT_TRUE(manifests);
  const objects::Service back = applied(*manifests);
  EXPECT_EQ(back.metadata.name, "chat");
  EXPECT_EQ(back.metadata.namespace_, "research");
  EXPECT_EQ(back.metadata.labels, metadata.labels);
  EXPECT_EQ(back.metadata.annotations, metadata.annotations);
  EXPECT_EQ(back.spec.replicas, 3u);
  EXPECT_EQ(back.spec.run.image, spec.run.image);
  EXPECT_EQ(back.spec.run.command, spec.run.command);
  EXPECT_EQ(back.spec.run.env, spec.run.env);
}

TEST(Render, a_port_becomes_a_kubernetes_service_and_a_probe) {
  objects::ServiceSpec spec = rendered_spec({.memory = "4GiB"});
  spec.port = 8000;
  spec.readiness.http_get = objects::HttpGet{.path = "/ready"};
  const auto manifests = manifests_of(named("chat"), spec);
  ASSERT_TRUE(manifests);
  EXPECT_THAT(manifests->text, HasSubstr("        readinessProbe:\n          periodSeconds: 2\n"));
  const auto documents = yaml::documents_of(manifests->text);
  ASSERT_TRUE(documents);
  ASSERT_EQ(documents->size(), 2u);
  EXPECT_FALSE(dialects::is_cluster_service(documents->front()));
  ASSERT_TRUE(dialects::is_cluster_service(documents->back()));
  const auto address = dialects::read_cluster_service(documents->back());
  ASSERT_TRUE(address);
  EXPECT_EQ(address->name, "chat");
  EXPECT_EQ(address->port, 8000u);
  EXPECT_TRUE(dialects::selects(*address, dialects::pod_face(documents->front())));
}

TEST(Render, a_target_port_survives_a_round_trip) {
  objects::ServiceSpec spec = rendered_spec({.memory = "4GiB"});
  spec.replicas = 1;
  spec.port = 8000;
  spec.target_port = 30000;
  const auto manifests = manifests_of(named("chat"), spec);
  ASSERT_TRUE(manifests);
  const auto documents = yaml::documents_of(manifests->text);
  ASSERT_TRUE(documents);
  auto again = dialects::from_manifest(documents->front());
  const auto address = dialects::read_cluster_service(documents->back());
  ASSERT_TRUE(again && address);
  ASSERT_TRUE(dialects::give_port(*address, dialects::pod_face(documents->front()), again->service.spec));
  EXPECT_EQ(again->service.spec.port, 8000u);
  EXPECT_EQ(again->service.spec.target_port, 30000u);
}

TEST(Render, rejects_amounts_that_kubernetes_cannot_express) {
  const auto refused = [](const objects::Gpu& gpu) {
    const auto manifests = manifests_of(named("a"), rendered_spec(gpu));
    return manifests ? std::string("the service was rendered") : manifests.error().front().message;
  };
  EXPECT_EQ(refused({.memory = "4GiB", .share = "12.5%"}),
            "spec.gpu.share: '12.5%' is not a whole percentage, which carve.dev/compute requires");
  EXPECT_THAT(refused({.memory = "12.5%"}), HasSubstr("which nvidia.com/gpumem-percentage requires"));
  EXPECT_THAT(refused({.memory = "4 units", .share = "7%"}), HasSubstr("is not a multiple of 5 %"));
  EXPECT_THAT(refused({.memory = "4 units", .share = "10%", .devices = 2}),
              HasSubstr("a share on several devices requires memory in GiB"));
  EXPECT_THAT(refused({.memory = "4GiB", .share = "10%", .isolation = "memory"}),
              HasSubstr("implies isolation memory+compute in Kubernetes"));
}

TEST(Render, warns_about_rounded_and_omitted_fields) {
  objects::ServiceSpec spec = rendered_spec({.memory = "20GB"});
  spec.run.image.clear();
  spec.pool = "a10";
  spec.autoscale = objects::Autoscale{};
  const auto manifests = manifests_of(named("a"), spec);
  ASSERT_TRUE(manifests);
  EXPECT_THAT(
      manifests->warnings,
      ElementsAre(
          "spec.gpu.memory: '20GB' is rendered as 19074 MiB, because carve.dev/memory counts whole MiB",
          HasSubstr("spec.run.image is missing"), HasSubstr("spec.pool is not rendered"),
          HasSubstr("spec.autoscale is not rendered")));
  EXPECT_THAT(manifests->text, HasSubstr(R"(carve.dev/memory: "19074Mi")"));
}

TEST(Render, yaml_texts_are_always_quoted) {
  const auto json = api::parse(R"({"a":"1","on":[],"list":["x",{"b":true,"c":{}},[]],"empty":{},"9":null})");
  ASSERT_TRUE(json);
  EXPECT_EQ(yaml::yaml_text(*json),
            "a: \"1\"\n\"on\": []\nlist:\n- \"x\"\n- b: true\n  c: {}\n- []\nempty: {}\n\"9\": null\n");
  EXPECT_EQ(*api::parse(yaml::documents_of(yaml::yaml_text(*json))->front()), *json);
}

}  // namespace
}  // namespace carve::render
