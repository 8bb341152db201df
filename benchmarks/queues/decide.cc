// Measures one decision over 10,000 waiting jobs in 64 queues that share a pool of 256 devices: without
// backfill, and with it in every queue while 128 jobs with deadlines run. Takes about a second in one thread.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "workload/queue.h"

namespace {

using namespace carve;
using namespace carve::workload;

// Returns this thread's processor time, which other work on a shared machine does not affect.
double seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// A capacity that counts whole devices.
class Devices final : public Capacity {
 public:
  explicit Devices(uint64_t free) : free_(free) {}
  bool take(uint64_t job, const JobNeed& need) override {
    const uint64_t slices = slice_count(need);
    if (slices > free_) return false;
    free_ -= slices;
    held_.emplace_back(job, slices);
    return true;
  }
  bool take_same(uint64_t job, const Capacity& other) override {
    const auto& from = dynamic_cast<const Devices&>(other).held_;
    const auto held = std::ranges::find(from, job, &std::pair<uint64_t, uint64_t>::first);
    return held != from.end() && take(job, {.slices = static_cast<uint32_t>(held->second)});
  }
  void release(uint64_t job) override {
    const auto held = std::ranges::find(held_, job, &std::pair<uint64_t, uint64_t>::first);
    if (held == held_.end()) return;
    free_ += held->second;
    held_.erase(held);
  }
  std::unique_ptr<Capacity> copy() const override { return std::make_unique<Devices>(*this); }

 private:
  uint64_t free_;
  std::vector<std::pair<uint64_t, uint64_t>> held_;
};

constexpr uint64_t devices = 256;
constexpr uint32_t largest_job = 64;

// Slices that each take all of a device.
JobNeed need_of(uint32_t slices, Ns deadline) {
  const Amounts amounts{.memory_bytes = (16_GiB).count, .share_bp = whole_device.basis_points};
  return {.groups = {{.slices = slices, .amounts = amounts}}, .deadline = deadline};
}

double milliseconds(bool backfill) {
  std::vector<Queue> queues;
  for (size_t i = 0; i < max_queues; ++i)
    queues.push_back(
        {.name = fmt::format("q{}", i), .weight = 1 + static_cast<uint32_t>(i % 7), .backfill = backfill});
  std::vector<WaitingJob> waiting;
  for (uint64_t id = 0; id < max_waiting_jobs; ++id)
    waiting.push_back({.id = id + devices,
                       .queue = queues[id % max_queues].name,
                       .priority = static_cast<int32_t>(id % 3),
                       .need = need_of(1 + static_cast<uint32_t>(id * 37 % largest_job), 3600 * second_ns)});
  std::vector<RunningJob> running;
  Devices free(devices);
  for (uint64_t id = 0; backfill && id < devices / 2; ++id) {
    running.push_back({id, queues[id % max_queues].name, need_of(1, static_cast<Ns>(id + 1) * second_ns), 0});
    free.take(id, running.back().need);
  }
  const Amount total{Bytes{devices * (16_GiB).count}, devices * whole_device.basis_points};
  const double begin = seconds();
  const QueueDecision decision = decide(queues, waiting, running, total, free, 0);
  const double took = 1e3 * (seconds() - begin);
  if (decision.waiting.size() + decision.actions.size() != max_waiting_jobs) std::abort();
  return took;
}

void print(const char* name, bool backfill, const char* behind) {
  std::vector<double> runs;
  for (int i = 0; i < 9; ++i) runs.push_back(milliseconds(backfill));
  std::ranges::sort(runs);
  const double median = runs[runs.size() / 2];
  fmt::print(
      R"({{"name":"queues.{}","value":{:.3f},"unit":"ms","goal":50,"better":"lower","native":null,"spread":{:.3f},"where":"workload"}}{})",
      name, median, (runs.back() - runs.front()) / median, behind);
}

}  // namespace

int main() {
  fmt::print("[");
  print("decide10000", false, ",");
  print("decide10000.backfill", true, "]\n");
}
