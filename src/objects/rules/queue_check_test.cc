#include "objects/rules/queue_check.h"

#include <gmock/gmock.h>

#include "objects/rules/job_check.h"

namespace carve::objects {
namespace {

using testing::ElementsAre;

std::string queue_document(const std::string& spec, const std::string& name = "q") {
  return fmt::format(R"({{"apiVersion":"carve.dev/v1","kind":"Queue","metadata":{{"name":"{}"}},"spec":{}}})",
                     name, spec);
}

std::vector<std::string> messages(const api::FieldErrors& errors) {
  std::vector<std::string> out;
  for (const api::FieldError& error : errors) out.push_back(error.message);
  return out;
}

TEST(QueueCheck, all_errors_of_a_queue_are_reported_together) {
  const auto wrong = read_queue(queue_document(
      R"({"gpu":"half","billing":"free","quota":{"memory":"4","compute":"x"},"computeGroups":["A"]})"));
  ASSERT_FALSE(wrong);
  EXPECT_THAT(
      messages(wrong.error()),
      ElementsAre(
          "spec.gpu: 'half' is not one of none, gpu or mgpu",
          "spec.billing: 'free' is neither onDemand nor prepaid",
          "spec.quota.memory: '4' is not an amount such as 40GiB",
          "spec.quota.compute: 'x' is not a whole percentage such as 250%",
          "spec.computeGroups[0]: 'A' is not a valid name; use 1 to 48 characters from a-z, 0-9 and '-'"));
  for (const char* spec : {R"({"quota":{}})", R"({"quota":{"devices":1,"memory":"1GiB","compute":"1%"}})"})
    EXPECT_THAT(messages(read_queue(queue_document(spec)).error()),
                ElementsAre("spec.quota: set either devices, or memory and compute"));
  for (const char* weight : {"0", "1001"})
    EXPECT_THAT(messages(read_queue(queue_document(fmt::format(R"({{"weight":{}}})", weight))).error()),
                ElementsAre(fmt::format("weight {}: must be 1 to 1000", weight)));
  EXPECT_THAT(messages(read_queue(queue_document(R"({"computeGroups":[]})")).error()),
              ElementsAre("spec.computeGroups: 0 groups are given; use 1 to 32"));
  EXPECT_THAT(messages(read_queue(R"({"metadata":{"name":"q","namespace":"n"},"spec":{}})").error()),
              ElementsAre("metadata.namespace: queues have no namespace; leave it out"));
  EXPECT_THAT(messages(read_queue(queue_document(R"({"gpu":"none","quota":{"devices":1}})")).error()),
              ElementsAre("queue q provides no GPU: leave out the quota"));
}

TEST(QueueCheck, a_quota_consists_of_devices_or_of_amounts) {
  const auto devices = read_queue(queue_document(R"({"quota":{"devices":2}})"));
  ASSERT_TRUE(devices) << devices.error().front().message;
  EXPECT_EQ(workload_queue("q", devices->spec, 100).quota, (workload::Amount{Bytes{200}, 20000}));
  const auto amounts = read_queue(queue_document(R"({"quota":{"memory":"40GiB","compute":"250%"}})"));
  ASSERT_TRUE(amounts) << amounts.error().front().message;
  EXPECT_EQ(workload_queue("q", amounts->spec, 100).quota, (workload::Amount{40_GiB, 25000}));
}

TEST(JobCheck, all_errors_of_a_job_are_reported_together) {
  const auto wrong = read_job(
      R"({"apiVersion":"carve.dev/v1","kind":"Job","metadata":{"name":"a"},"spec":{"engine":"flink","retries":101,
          "parameters":{"a b":"x"},"python":"python3","run":{"image":"-i","workdir":"here","env":{"A=B":"c"}}}})");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(messages(wrong.error()),
              ElementsAre("spec.queue: is required; list the queues with 'carve get queues'",
                          "spec.run.image: '-i' is not an image; use at most 512 printable ASCII characters "
                          "without spaces, and no - at the beginning",
                          "spec.run.workdir: 'here' is not an absolute path",
                          "spec.run.env: 'A=B' is not a valid variable name: printable ASCII characters "
                          "without =, at least one",
                          "spec.parameters: 'a b' is not a valid parameter name",
                          "spec.python: 'python3' is not an absolute path",
                          "spec.engine: 'flink' is not one of spark, ray or custom",
                          "spec.run.command: is required: the program to run",
                          "spec.retries: 101 is not a whole number from 0 to 100"));
}

TEST(JobCheck, the_number_of_pods_is_set_by_the_engines_own_field) {
  const auto wrong = [](const char* more) {
    const auto job = read_job(
        fmt::format(R"({{"metadata":{{}},"spec":{{"queue":"q","run":{{"command":["a"]}},{}}}}})", more));
    return job ? std::vector<std::string>{} : messages(job.error());
  };
  EXPECT_THAT(
      wrong(R"("engine":"spark","workers":3)"),
      ElementsAre(
          "spec.workers: 3 has no effect on a spark job; set spec.parameters: spark.executor.instances"));
  EXPECT_THAT(wrong(R"("engine":"ray","tasks":3)"),
              ElementsAre("spec.tasks: 3 has no effect on a ray job; set spec.workers"));
  EXPECT_THAT(wrong(R"("workers":2)"),
              ElementsAre("spec.workers: 2 has no effect on a custom job; set spec.tasks"));
  EXPECT_THAT(wrong(R"("tasks":2)"), ElementsAre());
}

TEST(JobCheck, a_job_may_omit_its_name) {
  const auto job = read_job(
      R"({"apiVersion":"carve.dev/v1","kind":"Job","metadata":{},"spec":{"queue":"q","run":{"command":["a"]}}})");
  ASSERT_TRUE(job) << job.error().front().message;
  EXPECT_EQ(engine_request(job->spec, {.name = "q"}).engine, JobEngine::custom);
  EXPECT_FALSE(read_job(R"({"metadata":{"name":"A!"},"spec":{"queue":"q","run":{"command":["a"]}}})"));
}

}  // namespace
}  // namespace carve::objects
