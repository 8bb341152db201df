#include "controller/billing/bill_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "controller/billing/budget_status.h"
#include "controller/billing/job_hours.h"

namespace carve::controller {
namespace {

using ledger::Stamp;
using ledger::UsageRecord;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t hour = 3600 * bill::second_ns;

Stamp moment_at(int64_t ns) { return {ns, "a", ns}; }

// Returns the record of a pod of the job spark-1: 30 % and 4096 MiB of an A10, starting at 1 h.
UsageRow pod(uint64_t id, int64_t end_ns = 2 * hour) {
  UsageRecord record;
  record.id = id;
  record.slice.name = fmt::format("spark-1-executor-{}", id);
  record.slice.account = "alice";
  record.slice.owner = 1000;
  record.slice.labels = {{"carve.dev/kind", "job"},
                         {"carve.dev/name", "spark-1"},
                         {"carve.dev/namespace", "default"},
                         {"carve.dev/queue", "q"}};
  SlicePart part{.memory = 4096_MiB, .share = {3000}, .usable = 22731_MiB, .model = "NVIDIA A10"};
  part.device.bytes[0] = 1;
  record.slice.parts = {part};
  record.from = moment_at(hour);
  if (end_ns != 0) record.to = moment_at(end_ns);
  record.busy_ns = static_cast<uint64_t>(hour / 2);
  return usage_row("n1", 1, record, [](const std::string&) { return false; });
}

class BillReportTest : public testing::Test {
 public:
  BillReportTest() {
    std::filesystem::create_directory(folder);
    auto opened = UsageStore::open(folder + "/usage.db", 1);
    if (opened) store.emplace(std::move(opened->store));
  }
  ~BillReportTest() override { std::filesystem::remove_all(folder); }
  api::Bill made(const BillQuery& query = {}) {
    auto out = make_bill(*store, tariffs, query, moment_at(10 * hour));
    EXPECT_TRUE(out) << out.error().message;
    return out ? std::move(*out) : api::Bill();
  }

  const std::string folder = fmt::format("/tmp/carve-bill-{}", getpid());
  std::optional<UsageStore> store;
  bill::Tariffs tariffs = *bill::Tariffs::from(
      {{.currency = "EUR", .units = bill::shipped_units(), .price = {2 * bill::millionths_per_one}}});
};

TEST_F(BillReportTest, counts_three_gpu_hours_per_pod_for_the_job_in_the_source) {
  ASSERT_TRUE(store->write({pod(1), pod(2)}));
  const api::Bill b = made({.by = BillBy::job, .with_lines = true});
  ASSERT_EQ(b.items.size(), 1u);
  EXPECT_EQ(b.items[0].key, "default/spark-1");
  EXPECT_EQ(b.items[0].gpu_hours, "6.000000");
  EXPECT_EQ(b.total.amount, "12.000000");
  EXPECT_EQ(b.total.used_gpu_hours, "10.000000");
  ASSERT_EQ(b.lines.size(), 2u);
  EXPECT_EQ(b.lines[0].id, "n1.1.0");
  EXPECT_EQ(b.lines[0].seconds, "3600.000000");
  EXPECT_EQ(b.lines[0].ratio, "0.300000");
  EXPECT_THAT(b.lines[0].formula, HasSubstr("max(30/100 = 0.300000, 4096/22731 = 0.180194) = 3.000000"));
}

// One hour of the jobs in the documents, in which each pod has 30 % of an A10 and the clock is set back by 20
// minutes.
TEST_F(BillReportTest, adds_up_an_hour_of_three_jobs_exactly_when_the_clock_is_set_back) {
  const struct {
    const char *job, *queue, *account, *role;
    uint32_t pods;
    Bytes memory;
  } jobs[] = {{"spark-1", "train", "alice", "executor", 2, 4096_MiB},
              {"spark-1", "train", "alice", "driver", 1, 4096_MiB},
              {"ray-2", "train", "bob", "worker", 2, 4096_MiB},
              {"custom-3", "tests", "bob", "task", 3, 1000_MiB}};
  std::vector<UsageRow> rows;
  for (const auto& job : jobs)
    for (uint32_t i = 0; i < job.pods; ++i) {
      UsageRecord record;
      record.id = rows.size() + 1;
      record.slice.name = fmt::format("{}-{}-{}", job.job, job.role, i);
      record.slice.account = job.account;
      record.slice.labels = {{"carve.dev/kind", "job"},
                             {"carve.dev/name", job.job},
                             {"carve.dev/namespace", "default"},
                             {"carve.dev/queue", job.queue}};
      record.slice.parts = {
          {.memory = job.memory, .share = {3000}, .usable = 22731_MiB, .model = "NVIDIA A10"}};
      record.from = moment_at(hour);
      record.to = Stamp{2 * hour - hour / 3, "a", 2 * hour};
      rows.push_back(usage_row("n1", 1, record, [](const std::string&) { return false; }));
    }
  ASSERT_TRUE(store->write(rows));
  const auto hours = [&](BillBy by) {
    std::map<std::string, std::string> out;
    const api::Bill b = made({.by = by, .with_lines = true});
    for (const api::BillSum& item : b.items) out[item.key] = item.gpu_hours;
    EXPECT_EQ(b.total.gpu_hours, "24.000000");
    EXPECT_EQ(b.total.amount, "48.000000");
    for (const api::BillLine& line : b.lines) EXPECT_THAT(line.formula, testing::EndsWith(" = 3.000000"));
    return out;
  };
  using Sums = std::map<std::string, std::string>;
  EXPECT_EQ(hours(BillBy::job), (Sums{{"default/spark-1", "9.000000"},
                                      {"default/ray-2", "6.000000"},
                                      {"default/custom-3", "9.000000"}}));
  EXPECT_EQ(hours(BillBy::queue), (Sums{{"train", "15.000000"}, {"tests", "9.000000"}}));
  EXPECT_EQ(hours(BillBy::account), (Sums{{"alice", "9.000000"}, {"bob", "15.000000"}}));
  EXPECT_EQ(made({.line = "n1.6.0"}).lines.at(0).formula,
            "1.000000 h x 10 x max(30/100 = 0.300000, 1000/22731 = 0.043993) = 3.000000");
}

TEST_F(BillReportTest, counts_an_open_record_until_its_node_was_last_seen) {
  ASSERT_TRUE(store->write({pod(1, 0)}));
  EXPECT_EQ(made().total.gpu_hours, "27.000000") << "9 hours until now";
  ASSERT_TRUE(store->write({}, SeenLedger{"n1", 1, moment_at(3 * hour)}));
  const api::Bill b = made({.with_lines = true});
  EXPECT_EQ(b.total.gpu_hours, "6.000000");
  EXPECT_TRUE(b.lines.at(0).open);
}

TEST_F(BillReportTest, sums_the_lines_of_a_job_to_its_hours) {
  UsageRow other_space = pod(4), of_service = pod(5), of_earlier_job = pod(6);
  other_space.name_space = "research";
  of_service.kind = "service";
  of_earlier_job.from_ns = hour / 2;
  ASSERT_TRUE(store->write({pod(1), pod(2), pod(3, 0), other_space, of_service, of_earlier_job}));
  ASSERT_TRUE(store->write({}, SeenLedger{"n1", 1, moment_at(3 * hour)}));
  BilledJob job{.uid = "a", .kind = "job", .name_space = "default", .name = "spark-1", .created_ns = hour};
  const ledger::Stamp now = moment_at(10 * hour);
  EXPECT_EQ(job_hours(*store, tariffs, job, now),
            (JobHours{.gpu_hours = "12.000000", .unpriced_seconds = "0.000000", .is_open = true}));
  EXPECT_EQ(job_hours(*store, *bill::Tariffs::from({}), job, now)->unpriced_seconds, "14400.000000");
  job.created_ns = 0;
  const auto all = job_hours(*store, tariffs, job, now);
  const api::Bill b = made({.by = BillBy::job});
  EXPECT_EQ(all->gpu_hours, std::ranges::find(b.items, "default/spark-1", &api::BillSum::key)->gpu_hours);
}

TEST_F(BillReportTest, makes_hours_final_when_a_job_and_its_slices_have_ended) {
  KnownJobHours known;
  const ledger::Stamp now = moment_at(10 * hour);
  BilledJob job{.uid = "a", .kind = "job", .name_space = "default", .name = "spark-1", .is_finished = true};
  const auto updated = [&] {
    EXPECT_TRUE(known.update(*store, tariffs, {job}, now));
    return known.find("a")->gpu_hours;
  };
  EXPECT_EQ(updated(), "0.000000") << "the job was seen as finished only after the copy";
  ASSERT_TRUE(store->write({pod(1)}));
  EXPECT_EQ(updated(), "3.000000");
  ASSERT_TRUE(store->write({pod(2)}));
  EXPECT_EQ(updated(), "3.000000") << "the hours are final";
  known.forget_final();
  EXPECT_EQ(updated(), "6.000000");
  EXPECT_TRUE(known.update(*store, tariffs, {}, now));
  EXPECT_FALSE(known.find("a")) << "the job was deleted";
}

TEST_F(BillReportTest, adds_up_over_adjacent_windows) {
  std::mt19937 random(3);
  std::vector<UsageRow> rows;
  for (uint64_t id = 1; id <= 300; ++id) {
    UsageRow row = pod(id);
    row.from_ns += static_cast<int64_t>(random() % 3'600'000'000) * 997;
    row.end_ns = row.from_ns + static_cast<int64_t>(random()) * 4096;
    row.share = {static_cast<uint32_t>(random() % 10'001)};
    rows.push_back(row);
  }
  ASSERT_TRUE(store->write(rows));
  const auto hours = [&](bill::Window window) {
    return *bill::parse_millionths("sum", made({.window = window}).total.gpu_hours, {INT64_MAX});
  };
  const int64_t whole = hours({}).count;
  for (int i = 0; i < 20; ++i) {
    const int64_t cut = hour + static_cast<int64_t>(random()) * 2048;
    EXPECT_EQ(hours({0, cut}).count + hours({cut, INT64_MAX}).count, whole);
  }
}

TEST_F(BillReportTest, shows_callers_only_their_own_records) {
  UsageRow other = pod(2);
  other.account = "bob";
  other.owner_uid = 2000;
  ASSERT_TRUE(store->write({pod(1), other}));
  EXPECT_EQ(made().items.size(), 2u);
  EXPECT_EQ(made({.account = "bob"}).total.lines, 1u);
  EXPECT_EQ(made({.may_see = [](const UsageRow& row) { return row.owner_uid == 1000; }}).items.at(0).key,
            "alice");
}

TEST_F(BillReportTest, counts_a_model_without_units_in_seconds_and_never_as_0) {
  UsageRow row = pod(1);
  row.model = "NVIDIA T4";
  ASSERT_TRUE(store->write({row}));
  const api::Bill b = made({.with_lines = true});
  EXPECT_EQ(b.total.unpriced_seconds, "3600.000000");
  EXPECT_EQ(b.lines.at(0).unpriced, "no tariff");
  EXPECT_EQ(b.lines.at(0).units, "");
}

// The slice of 30 % and 4096 MiB of 22731 costs 3 GPU-hours. When idle it needs 5 % and 256 MiB, the minimum;
// half used, 15 % and 1024 MiB; limited by memory, 4096 MiB.
TEST_F(BillReportTest, lists_as_idle_the_lines_for_which_a_smaller_slice_is_enough_by_descending_difference) {
  UsageRow full = pod(1), half = pod(2), idle = pod(3), memory = pod(4);
  full.busy_ns = static_cast<uint64_t>(hour) * 30 / 100;
  half.busy_ns = static_cast<uint64_t>(hour) * 15 / 100 - 1;
  half.peak_bytes = (1024_MiB).count - 1;
  idle.busy_ns = 0;
  memory.busy_ns = 0;
  memory.peak_bytes = (4096_MiB).count;
  ASSERT_TRUE(store->write({full, half, idle, memory}));
  const api::Bill b = made({.only_idle = true});
  ASSERT_EQ(b.lines.size(), 3u);
  EXPECT_EQ(b.lines[0].pod, "spark-1-executor-3");
  EXPECT_EQ(b.lines[0].smaller_share_bp, 500u);
  EXPECT_EQ(b.lines[0].smaller_memory_bytes, (256_MiB).count);
  EXPECT_EQ(b.lines[0].smaller_gpu_hours, "0.500000");
  EXPECT_EQ(b.lines[0].smaller_amount, "1.000000");
  EXPECT_EQ(b.lines[1].smaller_share_bp, 1500u);
  EXPECT_EQ(b.lines[1].smaller_memory_bytes, (1024_MiB).count);
  EXPECT_EQ(b.lines[1].smaller_gpu_hours, "1.500000");
  EXPECT_EQ(b.lines[1].peak_bytes, (1024_MiB).count - 1);
  EXPECT_EQ(b.lines[2].smaller_gpu_hours, "1.801944");  // 10 x 4096/22731: limited by memory.
}

TEST_F(BillReportTest, explains_a_single_part_of_a_record) {
  ASSERT_TRUE(store->write({pod(1), pod(2)}));
  const api::Bill b = made({.line = "n1.2.0"});
  ASSERT_EQ(b.lines.size(), 1u);
  EXPECT_EQ(b.lines[0].pod, "spark-1-executor-2");
}

TEST_F(BillReportTest, quotes_csv_fields_with_commas_and_quotes) {
  UsageRow row = pod(1);
  row.account = "a,\"b\"";
  row.queue = "";
  ASSERT_TRUE(store->write({row}));
  const std::string csv = csv_of(made({.with_lines = true}).lines);
  EXPECT_THAT(csv, HasSubstr("\r\nn1.1.0,\"a,\"\"b\"\"\",default,job,spark-1,spark-1-executor-1,,GPU-01"));
  EXPECT_THAT(csv,
              HasSubstr(",false,3600.000000,4294967296,23835181056,3000,0.300000,share,10.000000,3.000000,"
                        "2.000000,6.000000,5.000000,,n1\r\n"));
  EXPECT_THAT(csv,
              testing::StartsWith(
                  "line,account,namespace,kind,name,pod,queue,device,model,from,to,open,seconds,memory_bytes,"
                  "usable_bytes,share_bp,ratio,ratio_by,units,gpu_hours,price,amount,used_gpu_hours,labels,"
                  "node\r\n"));
}

// Returns a record with user labels.
UsageRow labelled(uint64_t id, const UsageLabels& labels, unsigned parts = 1) {
  UsageRecord record = usage_of(pod(id))->record;
  record.slice.labels = labels;
  record.slice.labels["carve.dev/kind"] = "job";
  while (record.slice.parts.size() < parts) {
    record.slice.parts.push_back(record.slice.parts.front());
    ++record.slice.parts.back().device.bytes[0];
  }
  UsageRow row = usage_row("n1", 1, record, [](const std::string&) { return false; });
  row.account = "alice";
  return row;
}

TEST_F(BillReportTest, sums_groups_by_a_label_to_the_whole) {
  ASSERT_TRUE(
      store->write({labelled(1, {{"team", "a"}, {"env", "x"}}), labelled(2, {{"team", "a"}}, 2),
                    labelled(3, {{"team", "-"}}), labelled(4, {{"team", ""}}), labelled(5, {}), pod(6)}));
  const api::Bill b = made({.by_label = "team"});
  EXPECT_EQ(b.by, "label:team");
  std::vector<std::string> groups;
  uint64_t lines = 0;
  double hours = 0;
  for (const api::BillSum& sum : b.items) {
    groups.push_back(fmt::format("{}{} {}", sum.key, sum.is_rest ? " (rest)" : "", sum.lines));
    lines += sum.lines;
    hours += std::stod(sum.gpu_hours);
  }
  EXPECT_THAT(groups, ElementsAre(" 1", "- 1", "a 3", "- (rest) 2"));
  EXPECT_EQ(lines, b.total.lines);
  EXPECT_DOUBLE_EQ(hours, std::stod(b.total.gpu_hours));
  EXPECT_EQ(b.total.gpu_hours, made().total.gpu_hours);
  EXPECT_THAT(csv_of_sums(b), HasSubstr("label:team,lines,gpu_hours"));
}

TEST_F(BillReportTest, contains_only_the_records_that_a_selector_selects) {
  ASSERT_TRUE(
      store->write({labelled(1, {{"team", "a"}}), labelled(2, {{"team", "b"}, {"env", "x"}}), pod(3)}));
  BillQuery query{.selects = [](const UsageLabels& labels) { return labels.contains("team"); },
                  .with_lines = true};
  const api::Bill b = made(query);
  ASSERT_EQ(b.lines.size(), 2u);
  EXPECT_EQ(b.lines[1].labels, (UsageLabels{{"env", "x"}, {"team", "b"}}))
      << "Carve's own labels are left out";
  EXPECT_THAT(csv_of(b.lines), HasSubstr(",env=x;team=b,n1\r\n"));
}

// Returns the record of a pod's container on a node of a cluster.
UsageRow cluster_pod(const char* node, uint64_t id, const char* name_space, UsageLabels labels = {},
                     unsigned parts = 1) {
  UsageRecord record = usage_of(pod(id))->record;
  record.slice.labels = std::move(labels);
  record.slice.holder.pod = PodContainer{name_space, "web-0", "uid", "main"};
  record.slice.account = name_space;
  record.slice.name = "k7";
  while (record.slice.parts.size() < parts) {
    record.slice.parts.push_back(record.slice.parts.front());
    ++record.slice.parts.back().device.bytes[0];
  }
  return usage_row(node, 1, record, [](const std::string&) { return true; });
}

TEST_F(BillReportTest, shows_node_pod_and_namespace_of_a_container) {
  for (const unsigned parts : {1u, 2u}) {
    ASSERT_TRUE(store->write({cluster_pod("n1.example", 7, "a", {{"team", "x"}}, parts)}));
    const api::Bill b = made({.line = "n1.example.7.0"});
    ASSERT_EQ(b.lines.size(), 1u);
    const api::BillLine& line = b.lines[0];
    EXPECT_EQ(std::tie(line.node, line.namespace_, line.kind, line.name, line.pod),
              std::make_tuple("n1.example", "a", "pod", "web-0", "web-0/main"));
    EXPECT_EQ(line.labels, (UsageLabels{{"team", "x"}}));
  }
}

TEST_F(BillReportTest, groups_pods_by_namespace_node_and_workload) {
  const UsageLabels service{
      {"carve.dev/kind", "service"}, {"carve.dev/name", "chat"}, {"carve.dev/queue", "q"}};
  UsageRow replaced = cluster_pod("n2", 4, "b");
  replaced.ledger = 2;
  ASSERT_TRUE(store->write({cluster_pod("n1", 1, "a"), cluster_pod("n1", 2, "b", service),
                            cluster_pod("n2", 3, "b", {{"carve.dev/kind", "service"}}), replaced, pod(9)}));
  const auto groups = [&](const BillQuery& query) {
    std::vector<std::string> out;
    for (const api::BillSum& sum : made(query).items) out.push_back(fmt::format("{} {}", sum.key, sum.lines));
    return out;
  };
  EXPECT_THAT(groups({.by = BillBy::name_space}), ElementsAre("a 1", "b 3", "default 1"));
  EXPECT_THAT(groups({.by = BillBy::node}), ElementsAre("n1 3", "n2 2")) << "n2@2 is a ledger of n2";
  EXPECT_THAT(groups({.by = BillBy::service}), ElementsAre("service b/chat 1", "- 4"));
  EXPECT_THAT(groups({.by = BillBy::queue}), ElementsAre("q 2", "- 3"));
  const api::Bill b = made({.line = "n1.2.0"});
  ASSERT_EQ(b.lines.size(), 1u);
  EXPECT_NE(b.lines[0].amount, "0.000000") << "a label of the pod does not make it prepaid";
}

// A record with damaged labels counts as a record without labels.
TEST_F(BillReportTest, counts_a_record_with_unreadable_labels_as_one_without_labels) {
  UsageRow row = labelled(1, {{"team", "a"}});
  for (const char* labels : {"{", "[]", "{\"labels\":3}", "team=a"}) {
    row.labels = labels;
    ASSERT_TRUE(store->write({row}));
    const api::Bill b = made({.by_label = "team"});
    ASSERT_EQ(b.items.size(), 1u) << labels;
    EXPECT_TRUE(b.items[0].is_rest) << labels;
    EXPECT_EQ(b.total.gpu_hours, "3.000000");
  }
}

TEST_F(BillReportTest, keeps_records_of_the_previous_schema_without_labels) {
  ASSERT_TRUE(store->write({labelled(1, {{"team", "a"}}), pod(2)}));
  store.reset();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder + "/usage.db").c_str(), &db), SQLITE_OK);
  EXPECT_EQ(
      sqlite3_exec(db,
                   "ALTER TABLE usage DROP COLUMN container; DROP INDEX usage_open;"
                   "ALTER TABLE usage DROP COLUMN labels; DROP TABLE inventory; PRAGMA user_version = 2",
                   nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(db);
  auto opened = UsageStore::open(folder + "/usage.db", 1);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->moved_aside, "") << opened->damage;
  store.emplace(std::move(opened->store));
  const api::Bill b = made({.by_label = "team"});
  ASSERT_EQ(b.items.size(), 1u);
  EXPECT_TRUE(b.items[0].is_rest);
  EXPECT_EQ(b.total.lines, 2u);
  ASSERT_TRUE(store->write({labelled(3, {{"team", "a"}})}));
  EXPECT_EQ(made({.by_label = "team"}).items.size(), 2u);
}

TEST_F(BillReportTest, prints_sums_as_csv_rows_without_their_total) {
  UsageRow row = pod(1);
  row.account = "a,b";
  ASSERT_TRUE(store->write({row, pod(2)}));
  EXPECT_THAT(
      csv_of_sums(made({.by = BillBy::account})),
      testing::StartsWith(
          "account,lines,gpu_hours,used_gpu_hours,amount,currency,unpriced_seconds\r\n\"a,b\",1,3.000000,"));
  EXPECT_THAT(csv_of_sums(made({.by = BillBy::job})), HasSubstr("\r\ndefault/spark-1,2,6.000000,"));
}

TEST(BudgetStatus, reports_the_reached_levels_and_holds_jobs_at_the_limit) {
  const UtcMonth month = month_of(1'795'559'400'000'000'000);
  objects::BudgetSpec spec{.account = "alice", .gpu_hours = "10", .then = "hold"};
  const auto at = [&](const char* used) {
    return budget_status(spec, {.gpu_hours = used, .amount = "99.000000"}, month);
  };
  EXPECT_EQ(at("7.999999").percent, 79u);
  EXPECT_EQ(at("7.999999").reached, 0u);
  EXPECT_EQ(at("8.000000").reached, 80u);
  EXPECT_FALSE(at("9.999999").holds);
  EXPECT_TRUE(at("10.000000").holds);
  EXPECT_EQ(at("25.000000").percent, 250u);
  EXPECT_EQ(at("1.000000").from, "2026-11-01T00:00:00Z");
  spec = {.account = "alice", .amount = "90"};
  EXPECT_EQ(at("0.000000").percent, 110u);
  EXPECT_FALSE(at("0.000000").holds) << "it warns";
}

}  // namespace
}  // namespace carve::controller
