// Measures what the machine adds to every figure that contains a hand-over: how long a woken thread takes to
// run, how late timers are, the cost of a cache line that two threads write in turns, and the sizes of the
// caches. None of these has a goal; they help to compare figures from two machines.
#include <fmt/format.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace {

constexpr int rounds = 2'000;
constexpr int64_t timer_ns = 50'000;
constexpr int line_rounds = 1'000'000;

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

void sleep_ns(int64_t ns) {
  const timespec t{.tv_sec = 0, .tv_nsec = ns};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &t, nullptr);
}

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

// Returns the time from the wake-up of a waiting thread until it runs, in nanoseconds.
std::vector<double> wake_latencies() {
  std::vector<double> out;
  std::atomic<uint32_t> word{0};
  std::atomic<int64_t> woken_ns{0};
  std::atomic<int> seen{0};
  std::thread waiter([&] {
    for (uint32_t round = 1; round <= rounds; ++round) {
      while (word.load() < round) futex(word, FUTEX_WAIT_PRIVATE, round - 1);
      out.push_back(static_cast<double>(now_ns() - woken_ns.load()));
      seen.store(static_cast<int>(round));
    }
  });
  for (uint32_t round = 1; round <= rounds; ++round) {
    sleep_ns(timer_ns);  // By then the other thread waits.
    woken_ns.store(now_ns());
    word.store(round);
    futex(word, FUTEX_WAKE_PRIVATE, 1);
    while (seen.load() < static_cast<int>(round)) sleep_ns(timer_ns / 10);
  }
  waiter.join();
  return out;
}

// Returns how much later than requested a sleep of 50 us ends, in nanoseconds.
std::vector<double> timer_delays() {
  std::vector<double> out;
  for (int i = 0; i < rounds; ++i) {
    const int64_t begin = now_ns();
    sleep_ns(timer_ns);
    out.push_back(static_cast<double>(now_ns() - begin - timer_ns));
  }
  return out;
}

// Returns the nanoseconds per increment of a counter that `threads` threads increment concurrently, for each
// of 5 runs.
std::vector<double> increments(unsigned threads) {
  std::vector<double> out;
  for (int run = 0; run < 5; ++run) {
    alignas(64) std::atomic<uint64_t> counter{0};
    const auto work = [&] {
      for (int i = 0; i < line_rounds; ++i) counter.fetch_add(1, std::memory_order_relaxed);
    };
    const int64_t begin = now_ns();
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads; ++i) all.emplace_back(work);
    for (std::thread& one : all) one.join();
    out.push_back(static_cast<double>(now_ns() - begin) / line_rounds);
  }
  return out;
}

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

void print(const char* name, double value, const char* unit, const char* behind = ",") {
  fmt::print(
      R"({{"name":"host.{}","value":{:.4g},"unit":"{}","goal":null,"better":"lower","native":null,"spread":null,"where":"host"}}{})",
      name, value, unit, behind);
}

double mib(long bytes) { return static_cast<double>(std::max(bytes, 0L)) / (1 << 20); }

}  // namespace

int main() {
  const std::vector<double> wake = wake_latencies(), timer = timer_delays();
  fmt::print("[");
  print("wake.median", quantile(wake, 0.5) / 1000, "us");
  print("wake.p99", quantile(wake, 0.99) / 1000, "us");
  print("timer.median", quantile(timer, 0.5) / 1000, "us");
  print("timer.p99", quantile(timer, 0.99) / 1000, "us");
  print("increment.threads1", quantile(increments(1), 0.5), "ns");
  print("increment.threads2", quantile(increments(2), 0.5), "ns");
  print("cpus", static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)), "");
  print("cache.level1", mib(sysconf(_SC_LEVEL1_DCACHE_SIZE)), "MiB");
  print("cache.level2", mib(sysconf(_SC_LEVEL2_CACHE_SIZE)), "MiB");
  print("cache.level3", mib(sysconf(_SC_LEVEL3_CACHE_SIZE)), "MiB", "]\n");
}
