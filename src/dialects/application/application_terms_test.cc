#include "dialects/application/application_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "objects/rules/service_terms.h"
#include "yaml/documents.h"

namespace carve::dialects {
namespace {

using testing::HasSubstr;

// Returns the JSON text of an application with these fields of spec.gpu and these other lines of spec, both
// as YAML.
std::string application(const std::string& gpu, const std::string& lines = "") {
  const auto documents = yaml::documents_of(
      fmt::format("apiVersion: carve.dev/v1\nkind: Application\nmetadata: {{name: a}}\nspec:\n  gpu: {{{}}}\n"
                  "  run: {{command: [serve]}}\n{}",
                  gpu, lines));
  return documents ? documents->front() : documents.error().front().message;
}

Result<ApplicationService, api::FieldErrors> translated(const std::string& json,
                                                        const ApplicationContext& context = {}) {
  const auto [read, errors] = read_application(json);
  if (!errors.empty()) return tl::unexpected(errors);
  return service_of(read, context);
}

std::string summary(const std::optional<objects::Gpu>& gpu) {
  if (!gpu) return "none";
  if (gpu->exclusive) return fmt::format("{} whole", gpu->devices);
  return fmt::format("{} x {} {} {}", gpu->devices, gpu->memory, gpu->share.empty() ? "-" : gpu->share,
                     gpu->policy.empty() ? "-" : gpu->policy);
}

TEST(Application, each_form_of_gpu_results_in_its_slice) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "none"},
      {"type: none", "none"},
      {"type: GPU", "1 whole"},
      {"type: GPU, devices: 16", "16 whole"},
      {"type: mGPU, memory: 257, compute: 0.01", "1 x 257MiB 1% -"},
      {"type: mGPU, memory: 4GiB, compute: 0.99, devices: 1", "1 x 4096MiB 99% -"},
      {"type: mGPU, memory: 4096, compute: 1", "1 x 4096MiB 100% -"},
      {"type: mGPU, memory: '4096', compute: '0.30'", "1 x 4096MiB 30% -"},
      {"type: mGPU, memory: 4096, compute: 0.30, policy: fixed-share", "1 x 4096MiB 30% fixed-share"},
      {"type: mGPU, memory: 4096, compute: 0.3, policy: 固定配额", "1 x 4096MiB 30% fixed-share"},
      {"type: mGPU, memory: 4096, compute: 0.3, policy: 固定争抢", "1 x 4096MiB 30% guaranteed-burst-share"},
      {"type: mGPU, memory: 4096, policy: 争抢模式", "1 x 4096MiB - native-burst-share"},
      {"type: mGPU, memory: 4096, compute: 0.6, policy: native-burst-share",
       "1 x 4096MiB 60% native-burst-share"},
      {"type: mGPU, multiDevice: true, devices: 2, memory: 1026, compute: 1", "2 x 513MiB 50% -"},
      {"type: mGPU, multiDevice: true, devices: 4, memory: 8192, compute: 0.25", "4 x 2048MiB 6.25% -"},
      {"type: mGPU, multiDevice: true, devices: 16, memory: 16GiB, compute: 16", "16 x 1024MiB 100% -"},
  };
  for (const auto& [gpu, result] : rows) {
    const auto service = translated(application(gpu));
    ASSERT_TRUE(service) << gpu << ": " << service.error().front().message;
    EXPECT_EQ(summary(service->spec.gpu), result) << gpu;
    EXPECT_TRUE(objects::terms_of(service->spec)) << gpu;
    EXPECT_EQ(service->warnings, std::vector<std::string>());
  }
}

TEST(Application, each_rule_for_gpu_reports_its_field) {
  const std::string mgpu = "type: mGPU, ", good = mgpu + "memory: 4096, compute: 0.5";
  const std::string multi = mgpu + "multiDevice: true, ";
  const std::string neither = " is neither a positive whole number nor 0.01 to 0.99 with at most 2 decimals";
  const std::tuple<std::string, const char*, std::string> rows[] = {
      {"type: gpu", "spec.gpu.type", "gpu.type: 'gpu' is not none, mGPU or GPU"},
      {"memory: 4096", "spec.gpu.memory",
       "gpu.memory: type none has no GPU; leave memory out, or use type mGPU"},
      {"devices: 1", "spec.gpu.devices", "gpu.devices: type none has no GPU; leave it out"},
      {"type: GPU, compute: 0.5", "spec.gpu.compute",
       "gpu.compute: type GPU has whole devices; leave compute out"},
      {"type: GPU, multiDevice: true", "spec.gpu.multiDevice", "gpu.multiDevice: type GPU has whole devices"},
      {"type: GPU, devices: 17", "spec.gpu.devices", "gpu.devices: 17 is not between 1 and 16"},
      {"type: GPU, devices: 0", "spec.gpu.devices", "gpu.devices: 0 is not between 1 and 16"},
      {mgpu + "memory: 4096, compute: 0", "spec.gpu.compute", "gpu.compute: 0" + neither},
      {mgpu + "memory: 4096, compute: 0.00", "spec.gpu.compute", "gpu.compute: 0.00" + neither},
      {mgpu + "memory: 4096, compute: 0.005", "spec.gpu.compute", "gpu.compute: 0.005" + neither},
      {mgpu + "memory: 4096, compute: 0.123", "spec.gpu.compute", "gpu.compute: 0.123" + neither},
      {mgpu + "memory: 4096, compute: 0.29999999999999999999", "spec.gpu.compute", neither},
      {mgpu + "memory: 4096, compute: 1.5", "spec.gpu.compute", "gpu.compute: 1.5" + neither},
      {mgpu + "memory: 4096, compute: 1.0", "spec.gpu.compute", "gpu.compute: 1.0" + neither},
      {mgpu + "memory: 4096, compute: -1", "spec.gpu.compute", "gpu.compute: -1" + neither},
      {mgpu + "memory: 4096, compute: 1e0", "spec.gpu.compute", "gpu.compute: 1e0" + neither},
      {mgpu + "memory: 4096, compute: 30%", "spec.gpu.compute", "gpu.compute: 30%" + neither},
      {mgpu + "memory: 4096, compute: 2", "spec.gpu.compute",
       "gpu.compute: 2 is more than 1 device; use at most 1, or set multiDevice: true"},
      {mgpu + "memory: 4096, compute: 99999999999999999999999", "spec.gpu.compute", neither},
      {mgpu + "memory: 4096, compute: 9999999999999999999", "spec.gpu.compute", "is more than 1 device"},
      {mgpu + "memory: 4096", "spec.gpu.compute",
       "gpu.compute: is required unless the policy is native-burst-share"},
      {mgpu + "memory: 4096, policy: fixed-share", "spec.gpu.compute", "is required"},
      {mgpu + "compute: 0.5", "spec.gpu.memory", "gpu.memory: is required for type mGPU"},
      {mgpu + "memory: 256, compute: 0.5", "spec.gpu.memory",
       "gpu.memory: 256 MiB is too little; single-device sharing needs more than 256 MiB"},
      {mgpu + "memory: 256MiB, compute: 0.5", "spec.gpu.memory",
       "gpu.memory: 256 MiB is too little; single-device"},
      {mgpu + "memory: 4096.5, compute: 0.5", "spec.gpu.memory",
       "gpu.memory: '4096.5' is not a whole number of MiB"},
      {mgpu + "memory: 20GB, compute: 0.5", "spec.gpu.memory",
       "gpu.memory: '20GB' is not a whole number of MiB"},
      {good + ", devices: 2", "spec.gpu.devices", "gpu.devices: 2 devices require multiDevice: true"},
      {good + ", policy: fixed", "spec.gpu.policy",
       "gpu.policy: 'fixed' is not fixed-share, guaranteed-burst-share or native-burst-share (固定配额, "
       "固定争抢, 争抢模式)"},
      {multi + "memory: 2048, compute: 1", "spec.gpu.devices",
       "gpu.devices: is required with multiDevice; use 2 to 16"},
      {multi + "memory: 2048, compute: 1, devices: 1", "spec.gpu.devices",
       "gpu.devices: 1 is not between 2 and 16"},
      {multi + "memory: 34GiB, compute: 17, devices: 17", "spec.gpu.devices",
       "gpu.devices: 17 is not between 2 and 16"},
      {multi + "memory: 1024, compute: 1, devices: 2", "spec.gpu.memory",
       "gpu.memory: 1024 MiB is too little; multi-device sharing needs more than 1024 MiB"},
      {multi + "memory: 2048, compute: 0.3, devices: 3", "spec.gpu.memory",
       "gpu.memory: 2048 MiB does not divide into whole MiB over 3 devices; use a multiple of 3"},
      {multi + "memory: 3072, compute: 1, devices: 3", "spec.gpu.compute",
       "gpu.compute: 1 divided over 3 devices is not a multiple of 0.01 %"},
      {multi + "memory: 2048, compute: 3, devices: 2", "spec.gpu.compute",
       "gpu.compute: 3 is more than 2 devices; use at most 2"},
  };
  for (const auto& [gpu, field, message] : rows) {
    const auto service = translated(application(gpu));
    ASSERT_FALSE(service) << gpu;
    EXPECT_EQ(service.error().size(), 1u) << gpu;
    EXPECT_EQ(service.error().front().field, field) << gpu;
    EXPECT_THAT(service.error().front().message, HasSubstr(message)) << gpu;
  }
}

TEST(Application, elastic_containers_do_not_support_mgpu) {
  const std::string mgpu = "type: mGPU, memory: 4096, compute: 0.5", elastic = "  elasticContainer: true\n";
  const char* message = "elastic containers (VCI) do not support mGPU: only node (ECS) deployments do";
  const auto asked = translated(application(mgpu, elastic));
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error(), (api::FieldErrors{{"spec.elasticContainer", "true", message}}));
  const auto pool = translated(application(mgpu, "  pool: p\n"), {.is_elastic_pool = true});
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error(), (api::FieldErrors{{"spec.pool", "p", message}}));
  EXPECT_EQ(translated(application("", elastic))->warnings,
            (std::vector<std::string>{"spec.elasticContainer has no effect here"}));
}

TEST(Application, the_other_rules_are_those_of_a_service) {
  const std::tuple<const char*, const char*> rows[] = {
      {"  cpu: {request: '2', limit: '1'}\n",
       "spec.cpu.limit: 1 is less than the request 2; raise the limit"},
      {"  memory: {request: 2GiB, limit: 1GiB}\n", "spec.memory.limit: 1GiB is less than the request 2GiB"},
      {"  replicas: 65\n", "spec.replicas: 65 is not between 0 and 64"},
      {"  port: 0\n", "spec.port: 0 is not between 1 and 65535"},
      {"  replcas: 2\n", "spec.replcas: unknown field; the fields are cpu, elasticContainer, gpu"},
      {"  replicas: 1.5\n", "spec.replicas: 1.5 is not a non-negative whole number"},
      {"  pool: 1.5\n", "spec.pool: 1.5 is not a string; write it in quotes"},
  };
  for (const auto& [lines, message] : rows) {
    const auto service = translated(application("", lines));
    ASSERT_FALSE(service) << lines;
    EXPECT_THAT(service.error().front().message, HasSubstr(message));
  }
}

TEST(Application, all_errors_are_returned_together) {
  const auto service = translated(
      R"({"kind": "App", "spec": {"gpu": {"type": "mGPU", "memory": 1, "compute": 2.5}, "elasticContainer": true}})");
  ASSERT_FALSE(service);
  std::vector<std::string> fields;
  for (const api::FieldError& error : service.error()) fields.push_back(error.field);
  EXPECT_EQ(fields, (std::vector<std::string>{"apiVersion", "kind", "metadata.name", "spec.elasticContainer",
                                              "spec.gpu.memory", "spec.gpu.compute", "spec.run"}));
  EXPECT_FALSE(read_application("[]").errors.empty());
  EXPECT_FALSE(read_application("{").errors.empty());
  EXPECT_FALSE(read_application(R"({"spec": {"gpu": [1]}})").errors.empty());
  EXPECT_FALSE(read_application(R"({"spec": {"gpu": {"compute": {}}}})").errors.empty());
}

}  // namespace
}  // namespace carve::dialects
