#include "fronts/service_terms.h"

#include <gmock/gmock.h>

namespace carve::fronts {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

objects::Service service() {
  return {
      .api_version = "carve.dev/v1",
      .kind = "Service",
      .metadata = {.name = "a"},
      .spec = {
          .gpu = objects::Gpu{.memory = "4GiB", .share = "30%"}, .run = {.command = {"serve"}}, .port = 80}};
}

std::vector<std::string> fields(const objects::Service& s) {
  std::vector<std::string> out;
  for (const api::FieldError& error : check(s)) out.push_back(error.field);
  return out;
}

TEST(ServiceTerms, are_exact_in_both_kinds_of_units) {
  objects::ServiceSpec spec = service().spec;
  spec.cpu = {.request = "500m", .limit = "1.5"};
  spec.memory = {.request = "", .limit = "2GiB"};
  auto terms = terms_of(spec);
  ASSERT_TRUE(terms);
  EXPECT_EQ(terms->gpu->memory_bytes, 4ull << 30);
  EXPECT_EQ(terms->gpu->share_bp, 3000u);
  EXPECT_EQ(terms->cpu_request_milli, 500u);
  EXPECT_EQ(terms->cpu_limit_milli, 1500u);
  EXPECT_EQ(terms->memory_request_bytes, 2ull << 30) << "a request is the limit if it is absent";
  spec.gpu->memory = "20GB";
  EXPECT_EQ(terms_of(spec)->gpu->memory_bytes, 20'000'000'000u);
  spec.gpu->memory = "12.5%";
  EXPECT_EQ(terms_of(spec)->gpu->memory_bp, 1250u);
  EXPECT_FALSE(terms_of(spec)->gpu->memory_bytes);
}

TEST(ServiceTerms, a_valid_service_has_no_error) { EXPECT_THAT(fields(service()), IsEmpty()); }

TEST(ServiceTerms, each_rule_names_its_field) {
  using Edit = void (*)(objects::Service&);
  const std::pair<const char*, Edit> table[] = {
      {"apiVersion", [](auto& s) { s.api_version = "v1"; }},
      {"kind", [](auto& s) { s.kind = "Pod"; }},
      {"metadata.name", [](auto& s) { s.metadata.name = ""; }},
      {"metadata.name", [](auto& s) { s.metadata.name = "../etc"; }},
      {"metadata.name", [](auto& s) { s.metadata.name = std::string(49, 'a'); }},
      {"metadata.namespace", [](auto& s) { s.metadata.namespace_ = "A"; }},
      {"metadata.labels.carve.dev/name", [](auto& s) { s.metadata.labels["carve.dev/name"] = "x"; }},
      {"metadata.labels.a", [](auto& s) { s.metadata.labels["a"] = "\n"; }},
      {"spec.replicas", [](auto& s) { s.spec.replicas = 65; }},
      {"spec.port", [](auto& s) { s.spec.port = 0; }},
      {"spec.port", [](auto& s) { s.spec.port = 65536; }},
      {"spec.gpu.memory", [](auto& s) { s.spec.gpu->memory = "4"; }},
      {"spec.gpu.memory", [](auto& s) { s.spec.gpu->memory = ""; }},
      {"spec.gpu.share", [](auto& s) { s.spec.gpu->share = "101%"; }},
      {"spec.gpu.devices", [](auto& s) { s.spec.gpu->devices = 17; }},
      {"spec.gpu.isolation", [](auto& s) { s.spec.gpu->isolation = "both"; }},
      {"spec.gpu.policy", [](auto& s) { s.spec.gpu->policy = "fair"; }},
      {"spec.cpu.request", [](auto& s) { s.spec.cpu.request = "two"; }},
      {"spec.cpu.limit",
       [](auto& s) {
         s.spec.cpu = {"2", "1"};
       }},
      {"spec.memory.limit",
       [](auto& s) {
         s.spec.memory = {"2GiB", "1GiB"};
       }},
      {"spec.run.command", [](auto& s) { s.spec.run.command = {}; }},
      {"spec.run.workdir", [](auto& s) { s.spec.run.workdir = "here"; }},
      {"spec.run.env", [](auto& s) { s.spec.run.env["A=B"] = "x"; }},
      {"spec.run.env", [](auto& s) { s.spec.run.env["A"] = std::string(70'000, 'x'); }},
      {"spec.update", [](auto& s) { s.spec.update = {.max_surge = 0, .max_unavailable = 0}; }},
      {"spec.update.progressDeadlineSeconds", [](auto& s) { s.spec.update.progress_deadline_seconds = 0; }},
      {"spec.readiness.httpGet.path", [](auto& s) { s.spec.readiness.http_get = {"health z"}; }},
      {"spec.readiness.periodSeconds", [](auto& s) { s.spec.readiness.period_seconds = 0; }},
      {"spec.autoscale.min", [](auto& s) { s.spec.autoscale = {{.min = 3, .max = 2}}; }},
      {"spec.autoscale.metric", [](auto& s) { s.spec.autoscale = {{.metric = "cpu"}}; }},
  };
  for (const auto& [field, edit] : table) {
    objects::Service s = service();
    edit(s);
    EXPECT_THAT(fields(s), ElementsAre(field));
  }
}

TEST(ServiceTerms, all_errors_come_at_once) {
  objects::Service s = service();
  s.kind = "";
  s.spec.replicas = 100;
  s.spec.gpu->memory = "x";
  EXPECT_THAT(fields(s), ElementsAre("kind", "spec.gpu.memory", "spec.replicas"));
  EXPECT_EQ(check(s)[1].sentence, "spec.gpu.memory: 'x' is not an amount of memory such as 4GiB or 512MiB");
}

}  // namespace
}  // namespace carve::fronts
