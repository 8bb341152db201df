#include "objects/rules/service_terms.h"
#include "objects/rules/visible_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace carve::objects {
namespace {

using objects::Gpu;
using objects::Service;
using testing::HasSubstr;

Service valid() {
  return {.api_version = std::string(objects::api_version),
          .kind = "Service",
          .metadata = {.name = "a"},
          .spec = {.gpu = Gpu{.memory = "4GiB", .share = "30%"}, .run = {.command = {"true"}}, .port = 8000}};
}

TEST(ServiceTerms, keep_amounts_exact) {
  objects::ServiceSpec spec = valid().spec;
  spec.cpu = {.request = "500m", .limit = "1.5"};
  spec.memory = {.request = "", .limit = "512MiB"};
  const auto terms = terms_of(spec);
  ASSERT_TRUE(terms);
  EXPECT_EQ(*terms, (ReplicaTerms{.gpu = Amounts{.memory_bytes = 4ull << 30, .share_bp = 3000},
                                  .cpu_request_milli = 500,
                                  .cpu_limit_milli = 1500,
                                  .memory_request_bytes = 512ull << 20,
                                  .memory_limit_bytes = 512ull << 20}));
  const std::pair<const char*, uint64_t> amounts[] = {
      {"20GB", 20'000'000'000}, {"20GiB", 21'474'836'480}, {"1.5GiB", 1'610'612'736}, {"1MiB", 1 << 20}};
  for (const auto& [text, bytes] : amounts) {
    spec.gpu->memory = text;
    EXPECT_EQ(terms_of(spec)->gpu->memory_bytes, bytes) << text;
  }
  spec.gpu = Gpu{.memory = "12.5%", .devices = 2, .isolation = "memory", .policy = "native-burst-share"};
  EXPECT_EQ(*terms_of(spec)->gpu, (Amounts{.memory_bp = 1250,
                                           .devices = 2,
                                           .isolation = Isolation::memory,
                                           .policy = Policy::native_burst_share}));
  spec.gpu = Gpu{.memory = "16 units"};
  EXPECT_EQ(*terms_of(spec)->gpu, (Amounts{.memory_units = 16}));
  spec.gpu = Gpu{.devices = 4, .exclusive = true};
  EXPECT_EQ(*terms_of(spec)->gpu, (Amounts{.devices = 4, .exclusive = true}));
  spec.gpu.reset();
  EXPECT_FALSE(terms_of(spec)->gpu);
}

TEST(ServiceTerms, count_cores_in_thousandths) {
  const std::pair<const char*, uint64_t> good[] = {
      {"2", 2000}, {"0.001", 1}, {"1m", 1}, {"1000000", max_cpu_milli}};
  for (const auto& [text, milli] : good) EXPECT_EQ(parse_cores(text).value_or(0), milli) << text;
  for (const char* text :
       {"", "0", "0m", "-1", "1.5m", "2 ", "2GiB", "0.0001", "1000001", "99999999999999999999"})
    EXPECT_FALSE(parse_cores(text)) << text;
}

TEST(ServiceTerms, keep_unequal_parts) {
  Service service = valid();
  service.spec.gpu = Gpu{.parts = {{"8GiB", "30%"}, {"50%", "10%"}, {"2 units", "5%"}}};
  EXPECT_EQ(check(service), api::FieldErrors{});
  const auto terms = terms_of(service.spec);
  ASSERT_TRUE(terms);
  EXPECT_EQ(terms->gpu->parts, *parse_parts("8GiB:30%,50%:10%,2 units:5%"));
  EXPECT_EQ(terms->gpu->device_count(), 3u);
}

// terms_of() asserts that amounts without an error form a valid request.
TEST(ServiceTerms, any_combination_of_amounts_is_a_valid_request_or_an_error) {
  constexpr const char* memories[] = {"", "4GiB", "50%", "0%", "16 units", "0 units", "1B", "much"};
  constexpr const char* shares[] = {"", "30%", "0%", "101%", "many"};
  constexpr const char* hosts[] = {"", "500m", "2", "1GiB", "0", "x"};
  size_t good = 0, bad = 0;
  std::mt19937 dice(1);
  for (unsigned i = 0; i < 50'000; ++i) {
    const auto one_of = [&](const auto& texts) { return texts[dice() % std::size(texts)]; };
    objects::ServiceSpec spec;
    spec.gpu = Gpu{.memory = one_of(memories), .share = one_of(shares), .exclusive = dice() % 4 == 0};
    if (dice() % 4 == 0) spec.gpu->devices = dice() % 18;
    for (unsigned parts = dice() % 4 == 0 ? dice() % 18 : 0; parts > 0; --parts)
      spec.gpu->parts.push_back({one_of(memories), one_of(shares)});
    if (!spec.gpu->parts.empty() && dice() % 2 == 0) spec.gpu->memory = spec.gpu->share = "";
    for (objects::Resource* host : {&spec.cpu, &spec.memory})
      *host = {.request = one_of(hosts), .limit = one_of(hosts)};
    if (dice() % 2 == 0) spec.cpu = spec.memory = {};
    ++(terms_of(spec) ? good : bad);
  }
  EXPECT_GT(good, 1000u);
  EXPECT_GT(bad, 1000u);
}

TEST(ServiceTerms, amounts_are_shown_in_their_own_and_in_binary_units) {
  const std::pair<const char*, const char*> rows[] = {
      {"20GB", "20 GB (18.6 GiB)"},    {"20GiB", "20 GiB"}, {"4096MiB", "4 GiB"},
      {"0.5GB", "0.5 GB (476.8 MiB)"}, {"50%", "50%"},      {"", ""}};
  for (const auto& [amount, shown] : rows) EXPECT_EQ(memory_text(amount), shown);
}

TEST(ServiceCheck, a_valid_service_has_no_error) {
  EXPECT_EQ(check(valid()), api::FieldErrors{});
  Service service = valid();
  service.metadata.name = std::string(48, 'a');
  service.metadata.labels = {{"carve.dev/x", "a b"}};
  service.metadata.annotations = {{"note", "any \xc3\xa9\n"}};
  service.spec.replicas = 64;
  service.spec.run = {.command = {}, .image = "registry/a:1", .env = {{"A", ""}}, .workdir = "/"};
  service.spec.readiness.http_get = objects::HttpGet{.path = "/ready?a=1"};
  service.spec.autoscale =
      objects::Autoscale{.min = 1, .max = 64, .metric = AutoscaleMetric::concurrency, .target = 5};
  EXPECT_EQ(check(service), api::FieldErrors{});
}

TEST(ServiceCheck, each_rule_reports_its_field) {
  const struct {
    void (*change)(Service&);
    const char* field;
    const char* message;
  } rows[] = {
      {[](Service& s) { s.api_version = "v1"; }, "apiVersion", "apiVersion: 'v1' is not carve.dev/v1"},
      {[](Service& s) { s.kind = "service"; }, "kind", "kind: 'service' is not Service"},
      {[](Service& s) { s.metadata.name = ""; }, "metadata.name",
       "'' is not a valid name; use 1 to 48 characters from a-z"},
      {[](Service& s) { s.metadata.name = "a-"; }, "metadata.name", "'a-' is not a valid name"},
      {[](Service& s) { s.metadata.name = "A"; }, "metadata.name", "'A' is not a valid name"},
      {[](Service& s) { s.metadata.name = std::string(49, 'a'); }, "metadata.name", "is not a valid name"},
      {[](Service& s) { s.metadata.namespace_ = "../x"; }, "metadata.namespace",
       "'../x' is not a valid name"},
      {[](Service& s) { s.metadata.labels["a=b"] = ""; }, "metadata.labels", "'a=b' is not a valid key"},
      {[](Service& s) { s.metadata.labels["a"] = "\n"; }, "metadata.labels.a", "printable ASCII"},
      {[](Service& s) {
         for (int i = 0; i < 65; ++i) s.metadata.labels[fmt::format("{}", i)] = "";
       },
       "metadata.labels", "there are 65; use at most 64"},
      {[](Service& s) { s.metadata.annotations[""] = ""; }, "metadata.annotations", "'' is not a valid key"},
      {[](Service& s) { s.metadata.account = std::string(254, 'a'); }, "metadata.account", "at most 253"},
      {[](Service& s) { s.spec.replicas = 65; }, "spec.replicas",
       "spec.replicas: 65 is not between 0 and 64"},
      {[](Service& s) { s.spec.pool = "a b"; }, "spec.pool", "'a b' is not a valid node pool name"},
      {[](Service& s) { s.spec.gpu->memory = ""; }, "spec.gpu.memory", "the replica has no memory"},
      {[](Service& s) { s.spec.gpu->memory = "4096"; }, "spec.gpu.memory", "'4096' has no unit; try 4GiB"},
      {[](Service& s) { s.spec.gpu->memory = "-1GiB"; }, "spec.gpu.memory", "'-1GiB' is not a size"},
      {[](Service& s) { s.spec.gpu->memory = "1KiB"; }, "spec.gpu.memory",
       "'1KiB' is too little; a slice needs at least 1 MiB"},
      {[](Service& s) { s.spec.gpu->memory = "101%"; }, "spec.gpu.memory",
       "'101%' is not between 0.01% and 100%"},
      {[](Service& s) { s.spec.gpu->memory = "0 units"; }, "spec.gpu.memory",
       "'0 units' must be 1 to 1000000 units"},
      {[](Service& s) { s.spec.gpu->memory = "1.5 units"; }, "spec.gpu.memory", "'1.5 units' must be 1 to"},
      {[](Service& s) {
         s.spec.gpu = Gpu{.parts = {{"8GiB", "30%"}, {"4GB", "x"}}};
       },
       "spec.gpu.parts[1].share", "'x' is not a share"},
      {[](Service& s) {
         s.spec.gpu = Gpu{.parts = {{"8GiB", "30%"}, {"4G", "10%"}}};
       },
       "spec.gpu.parts[1].memory", "'4G' is not a size"},
      {[](Service& s) {
         s.spec.gpu = Gpu{.parts = {{"8GiB", "30%"}, {"1KiB", "10%"}}};
       },
       "spec.gpu.parts[1].memory", "'1KiB' is too little"},
      {[](Service& s) {
         s.spec.gpu = Gpu{.parts = {{"8GiB", "30%"}, {"", "10%"}}};
       },
       "spec.gpu.parts[1].memory", "the part has no memory"},
      {[](Service& s) {
         s.spec.gpu = Gpu{.parts = {{"8GiB", "30%"}, {"4GiB", ""}}};
       },
       "spec.gpu.parts[1].share", "on each device or on none"},
      {[](Service& s) {
         s.spec.gpu = Gpu{.memory = "1GiB", .parts = {{"8GiB", ""}, {"4GiB", ""}}};
       },
       "spec.gpu.memory", "leave out memory"},
      {[](Service& s) {
         s.spec.gpu = Gpu{.share = "30%", .parts = {{"8GiB", ""}}};
       },
       "spec.gpu.share", "leave out share"},
      {[](Service& s) {
         s.spec.gpu = Gpu{.devices = 3, .parts = {{"8GiB", ""}, {"4GiB", ""}}};
       },
       "spec.gpu.devices", "leave out devices"},
      {[](Service& s) {
         s.spec.gpu = Gpu{.exclusive = true, .parts = {{"8GiB", ""}}};
       },
       "spec.gpu.parts", "leave out parts"},
      {[](Service& s) {
         s.spec.gpu = Gpu{.parts = std::vector<objects::GpuPart>(17, {"1GiB", ""})};
       },
       "spec.gpu.parts", "17 are given; a slice can have 1 to 16"},
      {[](Service& s) { s.spec.gpu->share = "30"; }, "spec.gpu.share", "'30' is not a share; try 30%"},
      {[](Service& s) { s.spec.gpu->share = "0%"; }, "spec.gpu.share", "'0%' is not between 0.01% and 100%"},
      {[](Service& s) { s.spec.gpu->devices = 0; }, "spec.gpu.devices", "0 is not between 1 and 16"},
      {[](Service& s) { s.spec.gpu->devices = 17; }, "spec.gpu.devices", "17 is not between 1 and 16"},
      {[](Service& s) { s.spec.gpu->isolation = "all"; }, "spec.gpu.isolation",
       "'all' is not none, memory or memory+compute"},
      {[](Service& s) { s.spec.gpu->policy = "fixed"; }, "spec.gpu.policy",
       "'fixed' is not fixed-share, guaranteed-burst-share or"},
      {[](Service& s) { s.spec.gpu = Gpu{.memory = "1GiB", .isolation = "memory+compute"}; },
       "spec.gpu.share", "isolation memory+compute needs a compute share"},
      {[](Service& s) { s.spec.gpu = Gpu{.memory = "1GiB", .exclusive = true}; }, "spec.gpu.memory",
       "an exclusive replica has whole devices; leave out memory"},
      {[](Service& s) { s.spec.gpu = Gpu{.share = "30%", .exclusive = true}; }, "spec.gpu.share",
       "leave out share"},
      {[](Service& s) { s.spec.cpu.limit = "two"; }, "spec.cpu.limit", "'two' is not a number of cores"},
      {[](Service& s) { s.spec.cpu = {.request = "2", .limit = "500m"}; }, "spec.cpu.limit",
       "spec.cpu.limit: 500m is less than the request 2; raise the limit"},
      {[](Service& s) { s.spec.memory = {.request = "1GiB", .limit = "1GB"}; }, "spec.memory.limit",
       "1GB is less than the request 1GiB"},
      {[](Service& s) { s.spec.memory.limit = "0B"; }, "spec.memory.limit", "'0B' is zero"},
      {[](Service& s) { s.spec.run = {}; }, "spec.run", "there is nothing to run"},
      {[](Service& s) { s.spec.run.command = {""}; }, "spec.run.command[0]", "the program name is empty"},
      {[](Service& s) { s.spec.run.image = "a b"; }, "spec.run.image", "'a b' is not an image"},
      {[](Service& s) { s.spec.run.workdir = "tmp"; }, "spec.run.workdir", "'tmp' is not an absolute path"},
      {[](Service& s) { s.spec.run.env["A=B"] = ""; }, "spec.run.env", "is not a valid variable name"},
      {[](Service& s) { s.spec.run.env["A\nLD_PRELOAD"] = ""; }, "spec.run.env",
       "is not a valid variable name"},
      {[](Service& s) { s.spec.run.env[""] = ""; }, "spec.run.env", "is not a valid variable name"},
      {[](Service& s) { s.spec.run.env["\xc3\xa4"] = ""; }, "spec.run.env", "is not a valid variable name"},
      {[](Service& s) { s.spec.run.workdir = "/a\nb"; }, "spec.run.workdir", "is not an absolute path"},
      {[](Service& s) { s.spec.run.env["A"] = std::string(65'536, 'x'); }, "spec.run.env",
       "65539 bytes are too many; use at most 65536"},
      {[](Service& s) {
         s.spec.tolerations = {{.key = "a", .operator_ = Word<TolerationOperator>::from("In")}};
       },
       "spec.tolerations[0].operator", "'In' is neither Equal nor Exists"},
      {[](Service& s) {
         s.spec.tolerations = {{.key = "a", .operator_ = TolerationOperator::exists, .value = "b"}};
       },
       "spec.tolerations[0].value", "must be empty with operator Exists"},
      {[](Service& s) { s.spec.tolerations = {{.value = "b"}}; }, "spec.tolerations[0].key", "is required"},
      {[](Service& s) { s.spec.tolerations = {{.key = "a", .effect = Word<TaintEffect>::from("Never")}}; },
       "spec.tolerations[0].effect", "'Never' is not one of NoSchedule"},
      {[](Service& s) { s.spec.port = 0; }, "spec.port", "0 is not between 1 and 65535"},
      {[](Service& s) { s.spec.port = 65'536; }, "spec.port", "65536 is not between 1 and 65535"},
      {[](Service& s) { s.spec.readiness.http_get = objects::HttpGet{.path = "x"}; },
       "spec.readiness.httpGet.path", "'x' is not a URL path; start it with '/', and use no spaces"},
      {[](Service& s) {
         s.spec.port.reset();
         s.spec.readiness.http_get = objects::HttpGet{};
       },
       "spec.readiness.httpGet", "add spec.port"},
      {[](Service& s) { s.spec.readiness.period_seconds = 0; }, "spec.readiness.periodSeconds",
       "0 is not between 1 and"},
      {[](Service& s) { s.spec.readiness.timeout_seconds = 0; }, "spec.readiness.timeoutSeconds",
       "0 is not between 1 and"},
      {[](Service& s) { s.spec.readiness.failure_threshold = 0; }, "spec.readiness.failureThreshold",
       "0 is not"},
      {[](Service& s) { s.spec.update = {.max_surge = 0, .max_unavailable = 0}; }, "spec.update",
       "are both 0"},
      {[](Service& s) { s.spec.update.max_surge = 65; }, "spec.update.maxSurge",
       "65 is not between 0 and 64"},
      {[](Service& s) { s.spec.update.progress_deadline_seconds = 0; }, "spec.update.progressDeadlineSeconds",
       "0 is not"},
      {[](Service& s) { s.spec.termination_grace_period_seconds = 90'000; },
       "spec.terminationGracePeriodSeconds", "90000 is not between 0 and 86400"},
      {[](Service& s) { s.spec.autoscale = objects::Autoscale{.min = 3, .max = 2}; }, "spec.autoscale.max",
       "2 is less than min, which is 3"},
      {[](Service& s) { s.spec.autoscale = objects::Autoscale{.min = 0}; }, "spec.autoscale.min",
       "0 is not between 1 and 64"},
      {[](Service& s) { s.spec.autoscale = objects::Autoscale{.max = 65}; }, "spec.autoscale.max",
       "65 is not between 1 and 64"},
      {[](Service& s) {
         s.spec.autoscale = objects::Autoscale{.metric = Word<AutoscaleMetric>::from("rps")};
       },
       "spec.autoscale.metric", "'rps' is not qps, gpuUtilization or concurrency"},
      {[](Service& s) { s.spec.autoscale = objects::Autoscale{.target = 0}; }, "spec.autoscale.target",
       "must be at least 1"},
      {[](Service& s) {
         s.spec.port.reset();
         s.spec.autoscale = objects::Autoscale{};
       },
       "spec.autoscale.metric", "add spec.port, or use gpuUtilization"},
  };
  for (const auto& row : rows) {
    Service service = valid();
    row.change(service);
    const api::FieldErrors errors = check(service);
    ASSERT_EQ(errors.size(), 1u) << row.message;
    EXPECT_EQ(errors[0].field, row.field);
    EXPECT_THAT(errors[0].message, HasSubstr(row.message));
    EXPECT_TRUE(errors[0].message.starts_with(row.field)) << errors[0].message;
  }
}

TEST(ServiceCheck, all_errors_are_returned_together) {
  Service service;
  service.spec.gpu = Gpu{.memory = "1", .share = "1", .devices = 0};
  service.spec.update.max_surge = 0;
  std::vector<std::string> fields;
  for (const api::FieldError& error : check(service)) fields.push_back(error.field);
  EXPECT_EQ(fields,
            (std::vector<std::string>{"apiVersion", "kind", "metadata.name", "spec.gpu.devices",
                                      "spec.gpu.memory", "spec.gpu.share", "spec.run", "spec.update"}));
}

TEST(VisibleDevicesProblem, a_document_selects_among_the_devices_of_its_slice) {
  const auto problem = [](const char* list, uint32_t devices) {
    return visible_devices_problem({{"CUDA_VISIBLE_DEVICES", list}}, devices);
  };
  EXPECT_EQ(visible_devices_problem({}, 1), "");
  for (const auto& [list, devices] : {std::pair{"0", 1u}, {"1,0", 2u}, {"1", 2u}, {"", 0u}, {"-1", 0u}})
    EXPECT_EQ(problem(list, devices), "") << list;
  for (const auto& [list, devices] : {std::pair{"1", 1u},
                                      {"", 1u},
                                      {"-1", 1u},
                                      {"0,0", 2u},
                                      {"0,2", 2u},
                                      {"GPU-1", 1u},
                                      {"0,", 2u},
                                      {"0", 0u}})
    EXPECT_NE(problem(list, devices), "") << list;
  EXPECT_EQ(problem("3", 1), "'3' is not a list of devices of the slice; use 0, or leave the variable out");
}

}  // namespace
}  // namespace carve::objects
