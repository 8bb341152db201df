// Seeded histories of a cluster: nodes that are away, hang, repeat answers, come back or lose their ledgers,
// and a controller that is killed before and after any write. At the end of each history, the invoice from the
// controller's copy equals the invoice from the nodes' own records to the last digit, and no record is billed
// twice.
//
// CARVE_HISTORIES sets the number of histories, CARVE_SEED the first seed.
#include <gmock/gmock.h>

#include <cstdlib>

#include "bill/invoice.h"
#include "controller/billing/bill_report.h"
#include "controller/cluster/testing/simulated_cluster.h"

namespace carve::controller {
namespace {

using ledger::UsageRecord;
using Fault = SimulatedNode::Fault;

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// The key of a record: no two grants of a node are at the same time.
using RecordKey = std::pair<std::string, int64_t>;

class History {
 public:
  explicit History(uint64_t seed) : cluster_(seed) {
    cluster_.schedule = {.interval_ns = 60 * second_ns, .max_interval_ns = 300 * second_ns, .max_running = 2};
    for (const char* name : {"n1", "n2", "n3"}) cluster_.add_node(name);
    cluster_.books->killed = [this] { kill(); };
    cluster_.start();
  }

  void run(size_t steps) {
    for (size_t step = 0; step < steps; ++step) {
      cluster_.time.run_for(static_cast<Nanoseconds>(1 + chance(40) * second_ns));
      if (step % 3 == 0) cluster_.server.send_bookmarks();
      restart_if_killed();
      act();
    }
  }

  // Heals every fault, ends every record, and lets the controller catch up.
  void settle() {
    for (auto& [name, node] : cluster_.nodes) {
      node.fault = Fault::none;
      node.published_key = node.key;
      cluster_.publish(node);
      for (UsageRecord& record : node.records) end(node, record);
    }
    cluster_.server.clear_faults();
    cluster_.books->kill_before = cluster_.books->kill_after = 0;
    cluster_.client->set_connected(true);
    for (int i = 0; i < 24; ++i) {
      cluster_.server.send_bookmarks();  // As a real server does once a minute.
      cluster_.time.run_for(60 * second_ns);
      restart_if_killed();
    }
  }

  void check() {
    std::map<RecordKey, UsageRow> rows;
    ASSERT_TRUE(cluster_.books->store->each({}, [&](UsageRow&& row) {
      const RecordKey key{row.node, row.from_ns};
      EXPECT_TRUE(rows.emplace(key, std::move(row)).second)
          << "copied twice: " << key.first << " " << key.second;
      return true;
    }));
    std::vector<bill::Usage> direct, copied;
    for (const auto& [name, node] : cluster_.nodes)
      for (const UsageRecord& record : node.records) {
        const auto row = rows.find({name, record.from.utc_ns});
        ASSERT_NE(row, rows.end()) << name << " record " << record.id << " was lost";
        direct.push_back(usage_of_record(name, record));
        copied.push_back(*usage_of(row->second));
        rows.erase(row);
      }
    EXPECT_EQ(total_of(copied), total_of(direct));
    compare_lines(copied, direct);
    // The other rows were copied from ledgers that the nodes have lost.
    for (const auto& [key, row] : rows) {
      const auto truth = lost_.find(key);
      ASSERT_NE(truth, lost_.end()) << key.first << " has a record that no ledger had";
      EXPECT_NE(row.end_ns, 0) << "an open record of a lost ledger was not ended";
      EXPECT_LE(row.end_ns, truth->second.to ? utc_end_ns(truth->second) : lost_at_.at(key));
    }
    // The store's own invoice is the sum of its lines.
    auto bill = make_total();
    EXPECT_EQ(bill, total_of(all_usages()));
  }

  std::vector<std::string> events() const { return cluster_.events; }
  uint64_t kills() const { return kills_; }

 private:
  uint64_t chance(uint64_t n) { return cluster_.random() % n; }

  void kill() {
    is_killed_ = true;
    cluster_.books->kill_before = cluster_.books->kill_after = 0;
    // The process is gone: no call back arrives. It is destroyed outside of its own callback.
    if (cluster_.client) cluster_.client->forget_calls();
  }
  void restart_if_killed() {
    if (!is_killed_) return;
    is_killed_ = false;
    ++kills_;
    cluster_.start();
  }

  SimulatedNode& some_node() {
    auto node = cluster_.nodes.begin();
    std::advance(node, static_cast<std::ptrdiff_t>(chance(cluster_.nodes.size())));
    return node->second;
  }

  void grant(SimulatedNode& node) {
    const std::string name = fmt::format("p{}", ++pods_);
    const std::string uid = cluster_.put_pod(node.name, "a", name, chance(2) == 0 ? "research" : "");
    const auto* const object = cluster_.server.find("/api/v1/pods", "a", name);
    const bool has_account = (*object)["metadata"]["labels"].contains(kubernetes::account_label);
    UsageRecord& record = cluster_.grant(node, "a", name, uid, has_account ? "research" : "");
    if (chance(5) == 0) {
      record.slice.parts.push_back(record.slice.parts[0]);
      record.slice.parts[1].device.bytes[0] = 9;
    }
    pod_of_[{node.name, record.from.utc_ns}] = name;
  }
  void end(SimulatedNode& node, UsageRecord& record) {
    if (record.to) return;
    record.to = cluster_.stamp(node.boot);
    record.busy_ns = 1000;
    if (chance(2) == 0)
      cluster_.server.remove("/api/v1/pods", "a", pod_of_.at({node.name, record.from.utc_ns}));
  }
  void end_some(SimulatedNode& node) {
    for (UsageRecord& record : node.records)
      if (chance(3) == 0) end(node, record);
  }
  void resize_some(SimulatedNode& node) {
    for (UsageRecord& record : node.records) {
      if (record.to || chance(3) != 0 || record.slice.parts.size() != 1) continue;
      record.periods.push_back({.terms = ledger::terms_of(record.slice), .to = cluster_.stamp(node.boot)});
      record.slice.parts[0].memory = Bytes{(1 + chance(16)) * (1_GiB).count};
    }
  }
  void reboot(SimulatedNode& node) {
    for (UsageRecord& record : node.records) end(node, record);
    node.boot += "x";
  }
  void lose(SimulatedNode& node, const UsageRecord& record) {
    const RecordKey key{node.name, record.from.utc_ns};
    lost_[key] = record;
    lost_at_[key] = cluster_.utc();
  }
  void replace_ledger(SimulatedNode& node) {
    for (const UsageRecord& record : node.records) lose(node, record);
    node.records.clear();
    node.last_id = chance(2) == 0 ? 0 : chance(10);
    node.boot += "y";
    grant(node);
  }
  // An agent that restores an older copy of its ledger does not reuse ids.
  void shorten_ledger(SimulatedNode& node) {
    for (uint64_t n = chance(4); n > 0 && node.records.size() > 1; --n) {
      lose(node, node.records.back());
      node.records.pop_back();
    }
  }

  void act() {
    SimulatedNode& node = some_node();
    switch (chance(20)) {
      case 0: node.fault = Fault::away; break;
      case 1: node.fault = Fault::hangs; break;
      case 2: node.fault = Fault::loses_answer; break;
      case 3: node.fault = Fault::repeats_answer; break;
      case 4: node.fault = Fault::sends_garbage; break;
      case 5: node.key[10] = static_cast<char>('A' + chance(26)); break;  // Not published yet.
      case 6:
        node.published_key = node.key;
        cluster_.publish(node);
        break;
      case 7: cluster_.server.remove("/api/v1/nodes", "", node.name); break;
      case 8: cluster_.publish(node); break;
      case 9: chance(3) == 0 ? replace_ledger(node) : reboot(node); break;
      case 10: shorten_ledger(node); break;
      case 11: cluster_.books->kill_before = cluster_.books->writes + 1 + chance(3); break;
      case 12: cluster_.books->kill_after = cluster_.books->writes + 1 + chance(3); break;
      case 13: is_killed_ = true; break;
      case 14: cluster_.client->set_connected(chance(2) == 0); break;
      case 15: cluster_.server.compact(); break;
      case 16: resize_some(node); break;
      case 17:
        node.fault = Fault::none;
        cluster_.client->set_connected(true);
        break;
      case 18: end_some(node); break;
      default: grant(node);
    }
    if (chance(2) == 0) grant(some_node());
  }

  static bill::Usage usage_of_record(const std::string& node, const UsageRecord& record) {
    bill::Usage out{.node = node,
                    .record = record,
                    .account = record.slice.account,
                    .name_space = "a",
                    .kind = "pod",
                    .name = record.slice.holder.pod->name,
                    .queue = "",
                    .devices = {}};
    for (const SlicePart& part : record.slice.parts)
      out.devices.push_back({part.device, part.model, part.usable});
    return out;
  }
  bill::Invoice invoice_of(const std::vector<bill::Usage>& usages) const {
    return bill::invoice(usages, tariffs_, {}, cluster_.stamp("controller"));
  }
  bill::Total total_of(const std::vector<bill::Usage>& usages) const {
    const bill::Invoice invoice = invoice_of(usages);
    for (const bill::RefusedUsage& refused : invoice.refused) ADD_FAILURE() << refused.message;
    return bill::total(invoice.lines);
  }
  void compare_lines(std::vector<bill::Usage>& copied, std::vector<bill::Usage>& direct) const {
    const auto lines = [&](const std::vector<bill::Usage>& usages) {
      std::vector<std::string> out;
      for (const bill::Line& line : invoice_of(usages).lines)
        out.push_back(fmt::format("{} {} {} {} {}", line.from, line.to, line.usage->account, line.usage->name,
                                  bill::explain(line)));
      std::ranges::sort(out);
      return out;
    };
    EXPECT_EQ(lines(copied), lines(direct));
  }
  std::vector<bill::Usage> all_usages() {
    std::vector<bill::Usage> out;
    EXPECT_TRUE(cluster_.books->store->each({}, [&](UsageRow&& row) {
      out.push_back(*usage_of(std::move(row)));
      return true;
    }));
    return out;
  }
  bill::Total make_total() {
    const auto report = make_bill(*cluster_.books->store, tariffs_, {}, cluster_.stamp("controller"));
    EXPECT_TRUE(report && report->refused.empty());
    const auto gpu_hours = bill::parse_millionths("gpu_hours", report->total.gpu_hours, {INT64_MAX});
    const auto amount = bill::parse_millionths("amount", report->total.amount, {INT64_MAX});
    return {.gpu_hours = gpu_hours->count, .amount = amount->count, .unpriced_ns = 0};
  }

  SimulatedCluster cluster_;
  bool is_killed_ = false;
  uint64_t kills_ = 0, pods_ = 0;
  std::map<RecordKey, std::string> pod_of_;
  std::map<RecordKey, UsageRecord> lost_;
  std::map<RecordKey, int64_t> lost_at_;
  const bill::Tariffs tariffs_ = *bill::Tariffs::from({{.currency = "EUR",
                                                        .units = bill::shipped_units(),
                                                        .price = {1'234'567},
                                                        .granularity = 7 * second_ns}});
};

TEST(ClusterSimulation, bills_each_record_once_to_the_last_digit) {
  const uint64_t first = number_of("CARVE_SEED", 1), histories = number_of("CARVE_HISTORIES", 60);
  std::map<std::string, uint64_t> reasons;
  uint64_t kills = 0;
  for (uint64_t seed = first; seed < first + histories && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("CARVE_SEED={} CARVE_HISTORIES=1", seed));
    History history(seed);
    history.run(60);
    history.settle();
    history.check();
    kills += history.kills();
    for (const std::string& event : history.events()) {
      const size_t begin = event.find(' ') + 1;
      ++reasons[event.substr(begin, event.find(':') - begin)];
    }
  }
  if (histories < 50) return;
  EXPECT_GT(kills, histories) << "the histories kill the controller";
  for (const char* reason : {"UsageReadFailed", "UsageReadResumed", "LedgerShortened", "LedgerReplaced"})
    EXPECT_GT(reasons[reason], 0u) << reason;
  EXPECT_EQ(reasons["UsageRefused"], 0u) << "honest nodes are never refused";
}

}  // namespace
}  // namespace carve::controller
