#include "node/devices/nvml_accounting.h"
#include "node/devices/nvml_library.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace carve::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A fake driver with one device, whose calls are plain functions.
struct Driver {
  nvmlReturn_t mode_result = NVML_SUCCESS, set_result = NVML_SUCCESS;
  bool on = false;
  int sets = 0, reads = 0;
  std::map<unsigned, nvmlAccountingStats_t> processes;
} driver;

nvmlReturn_t mode(nvmlDevice_t, nvmlEnableState_t* out) {
  *out = driver.on ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
  return driver.mode_result;
}
nvmlReturn_t set_mode(nvmlDevice_t, nvmlEnableState_t) {
  ++driver.sets;
  if (driver.set_result == NVML_SUCCESS) driver.on = true;
  return driver.set_result;
}
nvmlReturn_t pids(nvmlDevice_t, unsigned* count, unsigned* out) {
  if (!driver.on) return NVML_ERROR_NOT_SUPPORTED;
  const unsigned room = *count;
  *count = static_cast<unsigned>(driver.processes.size());
  if (*count > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (const auto& [pid, stats] : driver.processes) *out++ = pid;
  return NVML_SUCCESS;
}
nvmlReturn_t stats(nvmlDevice_t, unsigned pid, nvmlAccountingStats_t* out) {
  ++driver.reads;
  const auto found = driver.processes.find(pid);
  if (found == driver.processes.end()) return NVML_ERROR_NOT_FOUND;
  *out = found->second;
  return NVML_SUCCESS;
}

class AccountingTest : public testing::Test {
 protected:
  AccountingTest() { driver = Driver{}; }
  static void process(unsigned pid, uint64_t start, bool running, uint64_t peak = 100) {
    driver.processes[pid] = {
        .maxMemoryUsage = peak, .time = running ? 0u : 5u, .startTime = start, .isRunning = running};
  }
  AccountingSample read() { return accounting.read({mode, set_mode, pids, stats}, nullptr); }
  std::vector<int> read_pids() {
    std::vector<int> out;
    for (const AccountedProcess& p : read().processes) out.push_back(p.pid);
    return out;
  }
  Accounting accounting;
};

TEST_F(AccountingTest, is_turned_on_and_returns_each_ended_process_once) {
  EXPECT_TRUE(read().is_on);
  EXPECT_EQ(driver.sets, 1);
  process(7, 1, false);
  EXPECT_THAT(read_pids(), ElementsAre(7));
  EXPECT_THAT(read_pids(), IsEmpty());
}

TEST_F(AccountingTest, leaves_out_processes_that_had_ended_before_the_first_sample) {
  driver.on = true;
  process(7, 1, false);
  process(8, 1, true);
  EXPECT_THAT(read_pids(), ElementsAre(8));
  process(8, 1, false);
  EXPECT_THAT(read_pids(), ElementsAre(8));
  EXPECT_EQ(driver.sets, 0);
}

TEST_F(AccountingTest, returns_running_processes_in_each_sample) {
  process(7, 1, true);
  EXPECT_THAT(read_pids(), ElementsAre(7));
  EXPECT_THAT(read_pids(), ElementsAre(7));
  process(7, 1, false);
  EXPECT_THAT(read_pids(), ElementsAre(7));
  EXPECT_THAT(read_pids(), IsEmpty());
}

TEST_F(AccountingTest, finds_a_reused_pid) {
  read();
  for (unsigned pid = 1; pid <= 200; ++pid) process(pid, 1, false);
  EXPECT_EQ(read_pids().size(), 200u);
  process(150, 2, false);
  std::vector<int> found;
  for (size_t n = 0; n <= 200 / Accounting::read_again; ++n)
    for (const int pid : read_pids()) found.push_back(pid);
  EXPECT_THAT(found, ElementsAre(150));
}

TEST_F(AccountingTest, reads_known_processes_a_few_at_a_time) {
  read();
  for (unsigned pid = 1; pid <= 5000; ++pid) process(pid, 1, false);
  EXPECT_EQ(read_pids().size(), 5000u);
  driver.reads = 0;
  read();
  EXPECT_EQ(driver.reads, static_cast<int>(Accounting::read_again));
}

TEST_F(AccountingTest, reports_why_it_is_off) {
  driver.set_result = NVML_ERROR_NO_PERMISSION;
  EXPECT_THAT(read().trouble, HasSubstr("only root"));
  driver.mode_result = NVML_ERROR_NOT_SUPPORTED;
  EXPECT_THAT(read().trouble, HasSubstr("does not support"));
  EXPECT_THAT(accounting.read({}, nullptr).trouble, HasSubstr("not support accounting mode"));
  EXPECT_FALSE(read().is_on);
}

TEST_F(AccountingTest, stays_off_if_an_administrator_turned_it_off) {
  read();
  driver.on = false;
  EXPECT_THAT(read().trouble, HasSubstr("was turned off"));
  EXPECT_EQ(driver.sets, 1);
}

TEST_F(AccountingTest, does_not_count_memory_that_the_driver_does_not_report) {
  read();
  process(7, 1, false, NVML_VALUE_NOT_AVAILABLE);
  EXPECT_EQ(read().processes.at(0).peak, Bytes());
}

TEST(ProcessTables, of_unknown_drivers_are_reported) {
  for (const uint64_t known : {1904, 1960, 2008}) EXPECT_EQ(unknown_process_table(known, "550.163.01"), "");
  EXPECT_THAT(unknown_process_table(2016, "999.1"),
              HasSubstr("driver 999.1 has an unknown private table of 2016 bytes"));
}

}  // namespace
}  // namespace carve::node
