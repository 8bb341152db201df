#include "engines/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace carve::engines {
namespace {

// The examples on the vendor's page "use mGPU", byte for byte (requirements S4-8, S4-10, S4-12).
constexpr const char* spark_example =
    R"('spark.driver.resource.gpu.discoveryScript': '/opt/emr/current/spark/examples/src/main/scripts/getGpusResources.sh',
'spark.driver.resource.gpu.vendor': 'nvidia.com',
'spark.driver.resource.gpu.amount': '1', #GPU of the driver
'spark.executor.resource.gpu.discoveryScript': '/opt/emr/current/spark/examples/src/main/scripts/getGpusResources.sh',
'spark.executor.resource.gpu.vendor': 'nvidia.com',
'spark.executor.resource.gpu.amount': '1',
'spark.task.resource.gpu.discoveryScript': '/opt/emr/current/spark/examples/src/main/scripts/getGpusResources.sh',
'spark.task.resource.gpu.vendor': 'nvidia.com',
'spark.task.resource.gpu.amount': '0.1',
'emr.serverless.mgpu.core': '30',
'emr.serverless.mgpu.memory': '4096'
)";
constexpr const char* ray_example =
    R"(serverless.ray.worker.gpu.vendor=nvidia.com; serverless.ray.worker.gpu.amount=1;
emr.serverless.mgpu.core=30; # percent of one device
emr.serverless.mgpu.memory=4096;
)";
constexpr const char* custom_example =
    R"(-- a GPU for each task
set serverless.custom.job.gpu.enabled = true; set serverless.custom.job.task.gpus=1; set emr.serverless.mgpu.core=30; set emr.serverless.mgpu.memory=1000;
)";

TEST(Parameters, are_parsed_in_the_three_forms_of_the_vendor) {
  const std::string script = "/opt/emr/current/spark/examples/src/main/scripts/getGpusResources.sh";
  const auto spark = read_parameters(spark_example);
  ASSERT_TRUE(spark) << spark.error().front().message;
  EXPECT_EQ(spark->values, (Parameters{{"spark.driver.resource.gpu.discoveryScript", script},
                                       {"spark.driver.resource.gpu.vendor", "nvidia.com"},
                                       {"spark.driver.resource.gpu.amount", "1"},
                                       {"spark.executor.resource.gpu.discoveryScript", script},
                                       {"spark.executor.resource.gpu.vendor", "nvidia.com"},
                                       {"spark.executor.resource.gpu.amount", "1"},
                                       {"spark.task.resource.gpu.discoveryScript", script},
                                       {"spark.task.resource.gpu.vendor", "nvidia.com"},
                                       {"spark.task.resource.gpu.amount", "0.1"},
                                       {"emr.serverless.mgpu.core", "30"},
                                       {"emr.serverless.mgpu.memory", "4096"}}));
  EXPECT_TRUE(spark->warnings.empty());
  const auto ray = read_parameters(ray_example);
  ASSERT_TRUE(ray) << ray.error().front().message;
  EXPECT_EQ(ray->values, (Parameters{{"serverless.ray.worker.gpu.vendor", "nvidia.com"},
                                     {"serverless.ray.worker.gpu.amount", "1"},
                                     {"emr.serverless.mgpu.core", "30"},
                                     {"emr.serverless.mgpu.memory", "4096"}}));
  const auto custom = read_parameters(custom_example);
  ASSERT_TRUE(custom) << custom.error().front().message;
  EXPECT_EQ(custom->values, (Parameters{{"serverless.custom.job.gpu.enabled", "true"},
                                        {"serverless.custom.job.task.gpus", "1"},
                                        {"emr.serverless.mgpu.core", "30"},
                                        {"emr.serverless.mgpu.memory", "1000"}}));
}

TEST(Parameters, keep_their_values_in_every_form) {
  const struct {
    const char *text, *key, *value;
  } rows[] = {
      {"a=b", "a", "b"},
      {"a = b ; ", "a", "b"},
      {"a=", "a", ""},
      {"a=b=c", "a", "b=c"},
      {"a=x#y", "a", "x#y"},
      {"a=x #y", "a", "x"},
      {"a=-Xmx1g --add-opens java.base/x", "a", "-Xmx1g --add-opens java.base/x"},
      {"set a=x #y", "a", "x #y"},
      {"set a=x--y", "a", "x--y"},
      {"set a=x --y", "a", "x"},
      {"SET\ta =b;", "a", "b"},
      {"set = b", "set", "b"},
      {"set=b", "set", "b"},
      {"settings.a=b", "settings.a", "b"},
      {"\"a\" : \"it's\"", "a", "it's"},
      {R"('a':'it\'s \\ \n')", "a", R"(it's \ \n)"},
      {"'a': 'x; # y',", "a", "x; # y"},
      {"  'a':'',\r", "a", ""},
      {"# only = comment\n-- set b=c\na=1", "a", "1"},
      {"a='1'", "a", "'1'"},
      {"set a='1'", "a", "1"},
      {"set a = \"x; --y\" ; -- comment", "a", "x; --y"},
      {"SET a='it\\'s';", "a", "it's"},
      {"set a=x'y'", "a", "x'y'"},
  };
  for (const auto& row : rows) {
    const auto read = read_parameters(row.text);
    ASSERT_TRUE(read) << row.text << ": " << read.error().front().message;
    EXPECT_EQ(read->values, (Parameters{{row.key, row.value}})) << row.text;
  }
}

TEST(Parameters, that_occur_twice_have_the_last_value_and_cause_a_warning) {
  const auto read = read_parameters("a=1\nb=2; a=3\nset a = 4");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->values, (Parameters{{"a", "4"}, {"b", "2"}}));
  EXPECT_EQ(read->warnings, (std::vector<std::string>{
                                "a is set in line 1 and again in line 2; the last value is used, '3'",
                                "a is set in line 2 and again in line 3; the last value is used, '4'"}));
}

// The vendor's page shows each block as one line if its line ends are lost.
TEST(Parameters, in_a_comment_are_not_lost_silently) {
  for (const std::string example : {custom_example, ray_example, spark_example}) {
    std::string line = "# percent " + example;
    std::ranges::replace(line, '\n', ' ');
    const auto read = read_parameters(line);
    ASSERT_FALSE(read) << line;
    EXPECT_NE(
        read.error().front().message.find(
            " is in a comment, and the text sets no parameter; a comment extends to the end of its line"),
        std::string::npos);
  }
  std::string spark = spark_example;
  std::ranges::replace(spark, '\n', ' ');
  const auto some = read_parameters(spark);
  ASSERT_TRUE(some);
  EXPECT_EQ(some->values.size(), 3u);
  EXPECT_EQ(some->warnings,
            (std::vector<std::string>{"line 1: spark.executor.resource.gpu.discoveryScript and 7 more "
                                      "are in a comment, so they are not set"}));
  const auto one = read_parameters("a=1\n# spark.executor.cores=4");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->warnings,
            (std::vector<std::string>{"line 2: spark.executor.cores is in a comment, so it is not set"}));
  EXPECT_TRUE(read_parameters("# percent of one device, 1=all\na=1 # spark.x is the name")->warnings.empty());
  EXPECT_TRUE(read_parameters("# spark.executor.cores=4")) << "the comment has no GPU parameter";
}

TEST(Parameters, that_are_invalid_are_rejected_with_their_line) {
  const struct {
    const char *text, *message;
  } rows[] = {
      {"\nword", "line 2: 'word' is not a parameter; write key=value, 'key': 'value' or set key = value"},
      {"'a': 1", "line 1: ''a': 1' has no value in quotes; write 'key': 'value'"},
      {"'a': 'b", "line 1: ''a': 'b' has a quote that is not closed; write 'key': 'value'"},
      {"'a' 'b'", "line 1: ''a' 'b'' is not a pair; write 'key': 'value'"},
      {"'a': 'b' 'c': 'd'",
       "line 1: ''a': 'b' 'c': 'd'' has text after its value; separate pairs with commas"},
      {"=x", "line 1: '=x' has no valid parameter name; use 1 to 253 bytes without blanks or = ; # ' \""},
      {"a b=x",
       "line 1: 'a b=x' has no valid parameter name; use 1 to 253 bytes without blanks or = ; # ' \""},
      {"--conf a=b",
       "line 1: '--conf a=b' is an option of the command line; write only the parameter, as key=value"},
      {"set a='b", "line 1: 'set a='b' has a quote that is not closed; write set key = 'value'"},
      {"set a='b' c", "line 1: 'set a='b' c' has text after its value; separate parameters with ;"},
      {"a=\x01", "line 1: 'a=\x01' must not contain control characters"},
  };
  for (const auto& row : rows) {
    const auto read = read_parameters(row.text);
    ASSERT_FALSE(read) << row.text;
    EXPECT_EQ(read.error().front().message, row.message);
  }
  EXPECT_EQ(read_parameters("x\ny\nz").error().size(), 3u);
  EXPECT_FALSE(read_parameters(std::string(max_parameters_bytes + 1, 'a')));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "x\n";
  EXPECT_EQ(read_parameters(many).error().size(), api::max_field_errors);
}

}  // namespace
}  // namespace carve::engines
