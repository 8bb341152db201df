// Measures the time (median of five) and the peak memory for a month's invoice by account, and the time for a
// month's allocations with days, from a store with 10 million usage records of one year. Filling the store takes minutes.
// With DAYS = 30, all records are in the month and belong to 500 nodes: 3,000,000 are those of 200 pods a day on each.
//   bench_bills [RECORDS [DAYS]]
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <vector>

#include "controller/billing/allocation_report.h"
#include "controller/billing/bill_report.h"

namespace {

using namespace carve;
using namespace carve::controller;

constexpr uint64_t all_records = 10'000'000, records_at_once = 20'000;
constexpr int64_t second = bill::second_ns, day = 86'400 * second, year = 365 * day, month = 30 * day;
constexpr uint64_t cluster_nodes = 500;

// Returns a usage record. The ids are in the order of the grants, which are spread over the time.
UsageRow row(uint64_t id, uint64_t count, int64_t time, std::mt19937_64& random) {
  UsageRow out{.node = time == year ? "n1" : fmt::format("n{}", id % cluster_nodes),
               .ledger = 1,
               .id = id,
               .account = fmt::format("team-{}", id % 200)};
  out.owner_uid = 1000;
  out.name_space = "default";
  out.kind = "job";
  out.name = fmt::format("spark-{}", id / 4);
  out.pod = fmt::format("spark-{}-executor-{}", id / 4, id % 4);
  out.queue = "train";
  out.device.bytes[0] = static_cast<uint8_t>(id % 8);
  out.model = "NVIDIA A10";
  out.usable = 22731_MiB;
  out.memory = Bytes{(1 + random() % 16) * (1_GiB).count};
  out.share = {static_cast<uint32_t>(random() % 10) * 1000};
  out.from_ns =
      static_cast<int64_t>(static_cast<unsigned __int128>(id) * static_cast<uint64_t>(time) / count) / 1000 *
      1000;
  out.from_monotonic_ns = out.from_ns;
  out.boot_id = "5d2b2a34-0000-4000-8000-000000000000";
  out.end_ns = out.from_ns + static_cast<int64_t>(random() % static_cast<uint64_t>(7200 * second));
  out.busy_ns = static_cast<uint64_t>(out.end_ns - out.from_ns) / 3;
  return out;
}

bool fill(UsageStore& store, uint64_t count, int64_t time) {
  std::mt19937_64 random(1);
  std::vector<UsageRow> rows;
  for (uint64_t id = 1; id <= count; ++id) {
    rows.push_back(row(id, count, time, random));
    if (rows.size() < records_at_once && id != count) continue;
    if (const auto written = store.write(rows); !written) {
      fmt::print(stderr, "bench_bills: {}\n", written.error().message);
      return false;
    }
    rows.clear();
  }
  return true;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void print(const char* name, std::vector<double> values, const char* unit, double goal, const char* behind) {
  std::ranges::sort(values);
  const double median = values[values.size() / 2];
  fmt::print(
      R"({{"name":"bills.{}","value":{:.3f},"unit":"{}","goal":{},"better":"lower","native":null,"spread":{:.3f},"where":"usage.db"}}{})",
      name, median, unit, goal, (values.back() - values.front()) / median, behind);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t count = argc > 1 ? strtoull(argv[1], nullptr, 10) : all_records;
  const int64_t time = argc > 2 ? static_cast<int64_t>(strtoull(argv[2], nullptr, 10)) * day : year;
  const bill::Window window = time == year ? bill::Window{6 * month, 7 * month} : bill::Window{0, month};
  std::string folder = "/var/tmp/carve-bills-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  bool good = false;
  std::vector<double> took, allocations_took;
  if (auto opened = UsageStore::open(folder + "/usage.db", 1); opened && fill(opened->store, count, time)) {
    const auto tariffs = bill::Tariffs::from(
        {{.currency = "EUR", .units = bill::shipped_units(), .price = {bill::millionths_per_one}}});
    good = tariffs.has_value();
    for (int i = 0; good && i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const auto made = make_bill(opened->store, *tariffs, {.window = window}, {year, "boot", year});
      took.push_back(seconds_since(begin));
      good = made && made->items.size() == 200;
      if (!made) fmt::print(stderr, "bench_bills: {}\n", made.error().message);
      const auto next = std::chrono::steady_clock::now();
      const auto held =
          make_allocations(opened->store, *tariffs, {.window = window, .by_day = true}, {year, "boot", year});
      allocations_took.push_back(seconds_since(next));
      good = good && held && held->items.size() == 200;
      if (good && i == 0) fmt::print(stderr, "{} records, {} lines in the month\n", count, made->total.lines);
    }
  }
  std::filesystem::remove_all(folder);
  if (!good) return 1;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("[");
  print("month", took, "s", 2, ",");
  print("allocations", allocations_took, "s", 2, ",");
  print("memory", {static_cast<double>(usage.ru_maxrss) / 1024}, "MiB", 256, "]\n");
}
