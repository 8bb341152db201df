#include "engines/engine_programs.h"

#include <gmock/gmock.h>

#include "objects/rules/job_check.h"

namespace carve::engines {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using workload::PodId;

const char* const vendor_script = "/opt/emr/current/spark/examples/src/main/scripts/getGpusResources.sh";

objects::JobSpec spark_job() {
  return {.queue = "q",
          .engine = JobEngine::spark,
          .parameters = {{"spark.driver.resource.gpu.amount", "1"},
                         {"spark.driver.resource.gpu.discoveryScript", vendor_script},
                         {"spark.executor.resource.gpu.amount", "1"},
                         {"spark.executor.instances", "2"},
                         {"spark.executor.cores", "10"},
                         {"spark.task.resource.gpu.amount", "0.1"},
                         {"spark.hadoop.fs.key", "a\\b"},
                         {"emr.serverless.mgpu.core", "30"},
                         {"emr.serverless.mgpu.memory", "4096"}},
          .run = {.command = {"app.py", "x"}},
          .engine_home = "/spark",
          .python = "/usr/bin/python3"};
}

EnginePlaces places() {
  return {.scripts = "/share", .job_folder = "/tmp/carve-1a", .port = 30001, .secret = "S"};
}

EnginePods pods_of(const objects::JobSpec& spec) {
  const auto pods = engine_pods(objects::engine_request(spec, {.name = "q"}));
  EXPECT_TRUE(pods) << pods.error().front().message;
  return *pods;
}

PodProgram program(const objects::JobSpec& spec, PodRole role, uint32_t index = 0) {
  return pod_program(spec, "j", pods_of(spec), {role, index}, places());
}

TEST(EnginePrograms, spark_listens_on_the_loopback_at_exactly_one_port) {
  const PodProgram master = program(spark_job(), PodRole::head);
  EXPECT_THAT(master.command, ElementsAre("/share/pod-folder", "/tmp/carve-1a-h0", "/spark/bin/spark-class",
                                          "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1",
                                          "--port", "30001", "--webui-port", "0"));
  EXPECT_THAT(master.env, Contains(Pair("SPARK_LOCAL_IP", "127.0.0.1")));
  EXPECT_THAT(master.env, Contains(Pair("SPARK_MASTER_OPTS",
                                        "-Dspark.authenticate=true -Dspark.port.maxRetries=0 "
                                        "-Dspark.master.rest.enabled=false")));
  EXPECT_THAT(master.cleanup, ElementsAre("rm", "-rf", "/tmp/carve-1a-h0"));
}

TEST(EnginePrograms, spark_executors_are_workers_that_discover_their_slice) {
  const PodProgram worker = program(spark_job(), PodRole::executor, 1);
  EXPECT_THAT(worker.command,
              ElementsAre("/share/pod-folder", "/tmp/carve-1a-e1", "/spark/bin/spark-class",
                          "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--port", "0",
                          "--webui-port", "0", "--cores", "10", "--memory", "1g", "spark://127.0.0.1:30001"));
  EXPECT_THAT(worker.env.at("SPARK_WORKER_OPTS"),
              HasSubstr("-Dspark.worker.resource.gpu.amount=1 "
                        "-Dspark.worker.resource.gpu.discoveryScript=/share/getGpusResources.sh"));
  objects::JobSpec plain = spark_job();
  for (const char* key :
       {"spark.driver.resource.gpu.amount", "spark.executor.resource.gpu.amount",
        "spark.task.resource.gpu.amount", "emr.serverless.mgpu.core", "emr.serverless.mgpu.memory"})
    plain.parameters.erase(key);
  EXPECT_THAT(program(plain, PodRole::executor).env.at("SPARK_WORKER_OPTS"), Not(HasSubstr("resource.gpu")));
}

// The user's values are kept. Passwords and the secret are not on a command line.
TEST(EnginePrograms, spark_drivers_read_their_configuration_from_a_file) {
  const PodProgram driver = program(spark_job(), PodRole::driver);
  EXPECT_THAT(driver.command,
              ElementsAre("/share/pod-folder", "/tmp/carve-1a-d0", "/spark/bin/spark-submit", "--master",
                          "spark://127.0.0.1:30001", "--deploy-mode", "client", "--properties-file",
                          "/tmp/carve-1a-d0/configuration", "app.py", "x"));
  const std::string& text = driver.env.at("CARVE_CONFIGURATION");
  EXPECT_THAT(text, HasSubstr("spark.driver.resource.gpu.discoveryScript=/share/getGpusResources.sh\n"));
  EXPECT_THAT(text, HasSubstr("spark.hadoop.fs.key=a\\\\b\n"));
  EXPECT_THAT(text, HasSubstr("spark.executor.cores=10\n"));
  EXPECT_THAT(text, HasSubstr("spark.cores.max=20\n"));
  EXPECT_THAT(text, HasSubstr("spark.authenticate.secret=S\n"));
  EXPECT_THAT(text, Not(HasSubstr("emr.serverless")));
}

TEST(EnginePrograms, report_variables_without_effect) {
  EXPECT_THAT(replaced_parameters(spark_job()), IsEmpty());
  objects::JobSpec custom{.engine = JobEngine::custom};
  custom.run.env = {{"CARVE_JOB", "a"}, {"LANG", "C"}};
  EXPECT_THAT(replaced_parameters(custom),
              ElementsAre("variable CARVE_JOB has no effect; each program of a job gets its own"));
}

TEST(EnginePrograms, spark_gets_the_users_discovery_script_in_a_variable) {
  objects::JobSpec spec = spark_job();
  spec.parameters["spark.executor.resource.gpu.discoveryScript"] = "/own/script";
  const auto variable = [&](PodRole role) { return program(spec, role).env["CARVE_DISCOVERY_SCRIPT"]; };
  EXPECT_EQ(variable(PodRole::executor), "/own/script");
  EXPECT_EQ(variable(PodRole::driver), vendor_script);
  spec.parameters.erase("spark.executor.resource.gpu.discoveryScript");
  EXPECT_EQ(variable(PodRole::executor), "");
  EXPECT_THAT(program(spec, PodRole::executor).env.at("SPARK_WORKER_OPTS"),
              HasSubstr("discoveryScript=/share/getGpusResources.sh"));
}

TEST(EnginePrograms, spark_gets_other_keys_unchanged_and_reports_those_without_effect) {
  objects::JobSpec spec = spark_job();
  spec.parameters.erase("spark.driver.resource.gpu.discoveryScript");
  spec.parameters["my.key"] = "v";
  spec.parameters["spark.master"] = "local[4]";
  spec.parameters["spark.authenticate"] = "false";
  EXPECT_THAT(
      replaced_parameters(spec),
      ElementsAre("spark.master has no effect; each job gets its own master, addresses and secret",
                  "spark.authenticate has no effect; each job gets its own master, addresses and secret"));
  const PodProgram driver = program(spec, PodRole::driver);
  EXPECT_THAT(driver.env.at("CARVE_CONFIGURATION"), HasSubstr("my.key=v\n"));
  EXPECT_THAT(driver.env.at("CARVE_CONFIGURATION"), HasSubstr("spark.authenticate=true\n"));
  EXPECT_THAT(driver.command, Contains("spark://127.0.0.1:30001")) << "--master precedes the file";
}

TEST(EnginePrograms, sizes_that_the_user_set_are_not_derived) {
  objects::JobSpec spec = spark_job();
  const auto keys = [&] {
    std::vector<std::string> out;
    for (const auto& derived : derived_parameters(spec, pods_of(spec))) out.push_back(derived.key);
    return out;
  };
  EXPECT_THAT(keys(), ElementsAre("spark.cores.max", "spark.executor.memory", "spark.ui.enabled",
                                  "XLA_PYTHON_CLIENT_PREALLOCATE", "TF_FORCE_GPU_ALLOW_GROWTH"));
  spec.parameters["spark.plugins"] = "com.nvidia.spark.SQLPlugin";
  const auto value = [&](const char* key) {
    for (const auto& derived : derived_parameters(spec, pods_of(spec)))
      if (derived.key == key) return derived.value;
    return std::string("not derived");
  };
  EXPECT_EQ(value("spark.rapids.memory.gpu.reserve"), "536870912");
  EXPECT_EQ(value("spark.rapids.sql.concurrentGpuTasks"), "1");
  EXPECT_EQ(value("spark.rapids.memory.gpu.allocFraction"), "not derived");
  spec.parameters["spark.jars.packages"] = "ml.dmlc:xgboost4j-spark-gpu_2.12:2.1.0";
  EXPECT_EQ(value("spark.rapids.memory.gpu.allocFraction"), "0.5");
  EXPECT_EQ(value("spark.rapids.memory.gpu.maxAllocFraction"), "0.5");
  for (const char* key : {"spark.rapids.memory.gpu.reserve", "spark.rapids.memory.gpu.allocFraction",
                          "spark.rapids.memory.gpu.maxAllocFraction", "spark.rapids.sql.concurrentGpuTasks",
                          "spark.executor.memory"}) {
    spec.parameters[key] = "7";
    EXPECT_EQ(value(key), "not derived") << key;
    EXPECT_THAT(program(spec, PodRole::driver).env.at("CARVE_CONFIGURATION"),
                HasSubstr(fmt::format("{}=7\n", key)));
  }
  spec.run.env["TF_FORCE_GPU_ALLOW_GROWTH"] = "false";
  EXPECT_THAT(keys(), Not(Contains("TF_FORCE_GPU_ALLOW_GROWTH")));
  EXPECT_THAT(program(spec, PodRole::executor).env, Not(Contains(testing::Key("TF_FORCE_GPU_ALLOW_GROWTH"))));
  EXPECT_THAT(program(spec, PodRole::executor).env, Contains(Pair("XLA_PYTHON_CLIENT_PREALLOCATE", "false")));
  EXPECT_THAT(program(spec, PodRole::head).env, Not(Contains(testing::Key("XLA_PYTHON_CLIENT_PREALLOCATE"))));
}

TEST(EnginePrograms, ray_nodes_share_a_network_but_no_folder_and_no_agent_port) {
  const objects::JobSpec spec{.queue = "q",
                              .engine = JobEngine::ray,
                              .parameters = {{"serverless.ray.worker.gpu.amount", "1"},
                                             {"emr.serverless.mgpu.core", "30"},
                                             {"emr.serverless.mgpu.memory", "4096"}},
                              .run = {.command = {"python3", "app.py"}},
                              .engine_home = "/venv/bin",
                              .workers = 2};
  const PodProgram head = program(spec, PodRole::head), worker = program(spec, PodRole::worker, 1);
  EXPECT_THAT(
      std::vector<std::string>(head.command.begin(), head.command.begin() + 10),
      ElementsAre("/share/pod-folder", "/tmp/carve-1a-h0", "/venv/bin/python3", "/share/forward-port", "bind",
                  "30001", "/share/cluster-network", "begin", "/tmp/carve-1a-h0", "/venv/bin/ray"));
  EXPECT_THAT(head.command, Contains("--num-gpus=0"));
  EXPECT_THAT(head.command, Contains("--temp-dir=/tmp/carve-1a-h0"));
  EXPECT_THAT(worker.command, Contains("join"));
  EXPECT_THAT(worker.command, Contains("--num-gpus=1"));
  EXPECT_THAT(worker.command, Contains("--temp-dir=/tmp/carve-1a-w1"));
  EXPECT_THAT(worker.command, Contains("--dashboard-agent-listen-port=20001"));
  EXPECT_THAT(worker.env, Contains(Pair("RAY_AUTH_TOKEN", "S")));
  EXPECT_THAT(worker.command, Contains("--object-store-memory=536870912")) << "an eighth of 4096 MiB";
  EXPECT_THAT(head.command, Contains("--object-store-memory=100000000"));
  EXPECT_THAT(worker.env, Contains(Pair("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.87")));
  objects::JobSpec own = spec;
  own.parameters["carve.ray.worker.store.bytes"] = "80000000";
  EXPECT_THAT(program(own, PodRole::worker).command, Contains("--object-store-memory=80000000"));
  const PodProgram driver = program(spec, PodRole::driver);
  EXPECT_THAT(driver.command, ElementsAre("/share/pod-folder", "/tmp/carve-1a-d0", "/share/cluster-network",
                                          "join", "/tmp/carve-1a-h0", "/venv/bin/python3",
                                          "/share/ray-driver", "2", "python3", "app.py"));
  EXPECT_THAT(driver.env, Contains(Pair("RAY_ADDRESS", "127.0.0.1:6379")));
}

// Ray's sockets are below the folder, such as
// "/session_2026-11-25_13-52-43_123456_1234567/sockets/plasma_store", and a socket's path may have at most
// 107 bytes. Without --memory each node claims the memory of the whole machine.
TEST(EnginePrograms, ray_nodes_have_short_folders_and_their_own_memory) {
  const objects::JobSpec spec{
      .queue = "q", .engine = JobEngine::ray, .run = {.command = {"a"}}, .engine_home = "/ray"};
  EnginePlaces longest = places();
  longest.job_folder = "/tmp/carve-7fffffffffffffff";
  const EnginePods pods = pods_of(spec);
  const std::string sockets = "/session_2026-11-25_13-52-43_123456_1234567/sockets/plasma_store";
  for (const PodId id : {PodId{PodRole::head, 0}, PodId{PodRole::worker, 32'767}}) {
    const PodProgram node = pod_program(spec, "j", pods, id, longest);
    const auto folder = std::ranges::find_if(
        node.command, [](const std::string& word) { return word.starts_with("--temp-dir="); });
    ASSERT_NE(folder, node.command.end());
    EXPECT_LE(folder->size() - std::string_view("--temp-dir=").size() + sockets.size(), 107u);
    EXPECT_THAT(node.command, Contains(testing::StartsWith("--memory=")));
    EXPECT_THAT(node.command, Contains("--block"));
    EXPECT_THAT(node.command, Not(Contains("stop")));
  }
}

TEST(EnginePrograms, custom_jobs_run_the_users_program_with_an_index) {
  objects::JobSpec spec{.queue = "q", .run = {.command = {"train", "--fast"}}, .tasks = 3};
  const PodProgram task = program(spec, PodRole::task, 2);
  EXPECT_THAT(task.command, ElementsAre("train", "--fast"));
  EXPECT_THAT(task.env, Contains(Pair("CARVE_TASK_INDEX", "2")));
  EXPECT_THAT(task.env, Contains(Pair("CARVE_TASK_COUNT", "3")));
  EXPECT_THAT(task.env, Contains(Pair("CARVE_JOB", "j")));
  EXPECT_THAT(task.cleanup, IsEmpty());
}

}  // namespace
}  // namespace carve::engines
