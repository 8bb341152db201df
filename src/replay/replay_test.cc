#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>
#include <numeric>

#include "replay/churn.h"
#include "replay/explain_request.h"
#include "replay/report.h"

namespace carve::replay {
namespace {

using testing::HasSubstr;

// A file that is removed when the test ends.
class File {
 public:
  explicit File(std::string_view text) {
    char name[] = "/tmp/carve-replay-XXXXXX";
    const int fd = mkstemp(name);
    path_ = name;
    std::ofstream(path_) << text;
    if (fd >= 0) ::close(fd);
  }
  ~File() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr std::string_view node_header = "sn,cpu_milli,memory_mib,gpu,model\n";
constexpr std::string_view pod_header =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time\n";

Cluster cluster_of(unsigned nodes) {
  std::string text(node_header);
  for (unsigned i = 0; i < nodes; ++i)
    text += fmt::format("n{},64000,262144,{},{}\n", i, i % 3 == 0 ? 2 : 8, i % 3 == 0 ? "T4" : "G2");
  return *read_cluster(File(text).path());
}

Trace trace_of(const Cluster& cluster, unsigned pods) {
  std::string text(pod_header);
  for (unsigned i = 0; i < pods; ++i)
    text += fmt::format("p{:04},4000,8192,{},{},{},,,{},{}\n", i, i % 10 == 0 ? 8 : 1,
                        i % 10 == 0 ? 1000 : 200 + i % 7 * 100, i % 5 == 1 ? "T4" : "", i, i + 500 + i % 77);
  return *read_trace(File(text).path(), cluster);
}

TEST(Random, gives_the_same_numbers_on_every_machine) {
  Random random(42, 1);
  std::vector<uint64_t> first = {random.next(), random.next(), random.next()};
  EXPECT_EQ(first,
            (std::vector<uint64_t>{9073330773058795503u, 10294607791756978663u, 9876576457237241552u}));
  std::vector<int> items(10);
  std::iota(items.begin(), items.end(), 0);
  Random(42, 2).shuffle(items);
  EXPECT_EQ(items, (std::vector<int>{8, 3, 6, 0, 5, 1, 7, 9, 2, 4}));
}

TEST(Random, is_uniform_or_exponential) {
  Random random(1, 1);
  std::array<int, 6> count{};
  for (int i = 0; i < 60'000; ++i) ++count[random.below(6)];
  for (const int c : count) EXPECT_NEAR(c, 10'000, 400);
  double sum = 0;
  int beyond_one = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double x = static_cast<double>(random.exponential()) / 4294967296.0;
    sum += x, beyond_one += x > 1;
  }
  EXPECT_NEAR(sum / 100'000, 1, 0.02);
  EXPECT_NEAR(beyond_one / 100'000.0, 0.3679, 0.01);
}

TEST(Trace, reports_errors_with_file_line_and_field) {
  const Cluster cluster = cluster_of(4);
  const struct {
    std::string text;
    const char* message;
  } rows[] = {
      {"", "the file is empty"},
      {"name,cpu_milli,memory_mib,num_gpu\n", ":1: column 'gpu_milli' is missing"},
      {"name,name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", ":1: column 'name' occurs twice"},
      {std::string(pod_header), "has no pod"},
      {fmt::format("{}a,1,1,1,500\n", pod_header), ":2: the row has 5 fields, but the header has 10"},
      {fmt::format("{}a,-1,1,1,500,,,,,\n", pod_header), ":2: cpu_milli: '-1' must be a whole number"},
      {fmt::format("{}a,1e3,1,1,500,,,,,\n", pod_header), ":2: cpu_milli: '1e3'"},
      {fmt::format("{}a,99999999999999999999,1,1,500,,,,,\n", pod_header), ":2: cpu_milli"},
      {fmt::format("{}a,1,1,9,1000,,,,,\n", pod_header),
       ":2: num_gpu: 9 is more than the 8 of the largest node"},
      {fmt::format("{}a,1,1,4,1000,T4,,,,\n", pod_header),
       "more than the 2 of the largest node of the allowed models"},
      {fmt::format("{}a,1,1,1,1001,,,,,\n", pod_header), ":2: gpu_milli: '1001'"},
      {fmt::format("{}a,1,1,1,0,,,,,\n", pod_header), ":2: gpu_milli: '0'"},
      {fmt::format("{}a,1,1,0,500,,,,,\n", pod_header), ":2: gpu_milli: '500'"},
      {fmt::format("{}a,1,1,1,500,T4|X9,,,,\n", pod_header), "no node has devices of model 'X9'"},
      {fmt::format("{}a,1,1,1,500,,,,,\na,1,1,1,500,,,,,\n", pod_header),
       ":3: name: 'a' is already the name of row 1"},
      {fmt::format("{}a,1,1,1,500,,,,9,3\n", pod_header), ":2: deletion_time: 3 is before creation_time 9"},
      {fmt::format("{}\"a\",1,1,1,500,,,,,\n", pod_header), ":2: the line has quotes"},
      {fmt::format("{}{}\n", pod_header, std::string(20'000, 'x')), ":2: the line has more than 16384 bytes"},
      {std::string(pod_header) + std::string(1, '\0'), ":2: the line has a NUL byte"},
  };
  for (const auto& row : rows) {
    const File file(row.text);
    const auto trace = read_trace(file.path(), cluster);
    ASSERT_FALSE(trace) << row.message;
    EXPECT_THAT(trace.error().message, HasSubstr(row.message));
    EXPECT_THAT(trace.error().message, HasSubstr(file.path()));
  }
  EXPECT_THAT(read_trace("/nowhere", cluster).error().message, HasSubstr("cannot be opened"));
  EXPECT_THAT(read_cluster(File(fmt::format("{}n,1,1,0,\n", node_header)).path()).error().message,
              HasSubstr("has a device"));
  EXPECT_THAT(read_cluster(File(fmt::format("{}n,1,1,99,T4\n", node_header)).path()).error().message,
              HasSubstr(":2: gpu: '99'"));
}

TEST(Trace, accepts_carriage_returns_any_column_order_and_missing_columns) {
  const auto trace = read_trace(
      File("gpu_milli,num_gpu,memory_mib,cpu_milli,name\r\n250,1,1024,4000,b\r\n\r\n1000,2,1,1,a").path(),
      cluster_of(4));
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->pods.size(), 2u);
  EXPECT_EQ(trace->pods[0].name, "a") << "sorted by name";
  EXPECT_EQ(trace->pods[1].milli, 250u);
  EXPECT_EQ(trace->pods[1].memory_mib, 1024u);
}

TEST(Inflate, adds_arrivals_up_to_130_percent) {
  const Cluster cluster = cluster_of(30);
  const uint64_t all = cluster.devices() * 1000;
  for (const unsigned pods : {20u, 2000u}) {
    const Trace trace = trace_of(cluster, pods);
    uint64_t demand = 0;
    for (const uint32_t i : arrivals(trace, cluster.devices(), 42)) demand += trace.pods[i].demand();
    EXPECT_LE(demand * 100, all * 130);
    EXPECT_GE((demand + 8000) * 100, all * 130);
  }
}

TEST(Inflate, is_reproducible_with_a_seed_and_differs_between_seeds) {
  const Cluster cluster = cluster_of(30);
  const Trace trace = trace_of(cluster, 400);
  for (const Strategy strategy :
       {Strategy::first_fit, Strategy::fgd, Strategy::fgd_scarcity, Strategy::lookahead}) {
    const Inflated once = inflate(cluster, trace, strategy, false, 42);
    EXPECT_EQ(once.allocated, inflate(cluster, trace, strategy, false, 42).allocated);
    EXPECT_EQ(once.failed, inflate(cluster, trace, strategy, false, 42).failed);
    EXPECT_NE(once.allocated, inflate(cluster, trace, strategy, false, 43).allocated);
    for (size_t m = 0; m < marks.size(); ++m) EXPECT_LE(once.allocated[m], std::min(100.0, 1.0 * marks[m]));
  }
}

TEST(Churn, loses_nothing_at_low_load_and_much_at_high_load) {
  const Cluster cluster = cluster_of(30);
  const Trace trace = trace_of(cluster, 400);
  ChurnPlan plan;
  plan.warmup = 1000, plan.counted = 4000;
  plan.load_permille = 200;
  EXPECT_EQ(churn(cluster, trace, Strategy::fgd_scarcity, false, plan, 42)->lost_percent(), 0);
  plan.load_permille = 2000;
  EXPECT_GT(churn(cluster, trace, Strategy::fgd_scarcity, false, plan, 42)->lost_percent(), 35);
  plan.load_permille = 900;
  plan.lifetimes = Lifetimes::trace;
  const auto own = churn(cluster, trace, Strategy::fgd_scarcity, false, plan, 42);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->lost, churn(cluster, trace, Strategy::fgd_scarcity, false, plan, 42)->lost);
  // All lifetimes are longer than 400 s. With this maximum they are all equal, so other pods are lost.
  plan.longest_seconds = 400;
  EXPECT_NE(own->lost, churn(cluster, trace, Strategy::fgd_scarcity, false, plan, 42)->lost);
}

TEST(Curves, have_a_row_for_each_percent_with_the_mean_over_the_seeds) {
  const Cluster cluster = cluster_of(30);
  Trace trace = trace_of(cluster, 400);
  trace.name = "a,\"b";
  std::vector<Series> all;
  for (const Strategy strategy : {Strategy::first_fit, Strategy::fgd})
    all.push_back({trace.name,
                   strategy,
                   {42, 43},
                   {inflate(cluster, trace, strategy, true, 42), inflate(cluster, trace, strategy, true, 43)},
                   {}});
  const std::string text = curves(all);
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + 2 * 131);
  EXPECT_TRUE(
      text.starts_with("trace,strategy,asked_percent,in_use_percent\n\"a,\"\"b\",first-fit,0,0.0000\n"));
  const double mean = (all[1].inflated[0].curve[100] + all[1].inflated[1].curve[100]) / 2;
  EXPECT_THAT(text, HasSubstr(fmt::format("\"a,\"\"b\",fgd,100,{:.4f}\n", mean)));
  EXPECT_THAT(csv(all), HasSubstr("\n\"a,\"\"b\",fgd,43,allocated_at_80,"));
  const auto& curve = all[0].inflated[0].curve;
  EXPECT_EQ(curve[0], 0);
  EXPECT_NEAR(curve[50], 50, 4.5) << "a single arrival may request up to 8 of the 180 devices";
  EXPECT_NEAR(curve[100], all[0].inflated[0].allocated[3], 1e-9);
  EXPECT_TRUE(std::ranges::is_sorted(curve));
}

TEST(Explain, reports_where_a_request_fits_in_a_filled_cluster_or_why_nowhere) {
  const Cluster cluster = cluster_of(30);
  const Trace trace = trace_of(cluster, 400);
  const auto shape = [&](std::string_view request, unsigned filled) {
    const auto pod = parse_request(request, models_of(cluster));
    EXPECT_TRUE(pod) << pod.error().message;
    return explain(cluster, trace, Strategy::fgd_scarcity, true, 42, filled, *pod).text;
  };
  EXPECT_THAT(shape("gpu_milli=500,gpu_spec=T4", 50), HasSubstr("It would be placed on n"));
  EXPECT_THAT(shape("gpu_milli=500,gpu_spec=T4", 50), HasSubstr("(T4), device"));
  EXPECT_THAT(shape("num_gpu=8,cpu_milli=1000", 130), HasSubstr("0/30 nodes can serve: "));
  EXPECT_THAT(shape("num_gpu=8,cpu_milli=1000", 130), HasSubstr("10 too few devices"));
  for (const char* wrong :
       {"gpu", "gpu_milli=", "gpu_milli=1001", "num_gpu=-1", "gpu_spec=X", "colour=red"}) {
    const auto pod = parse_request(wrong, models_of(cluster));
    ASSERT_FALSE(pod) << wrong;
    EXPECT_THAT(pod.error().message, HasSubstr(wrong));
  }
}

}  // namespace
}  // namespace carve::replay
