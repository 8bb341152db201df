#include <stdio.h>

#include <algorithm>
#include <vector>

#include "abi/nvml_tables.h"
#include "guest/nvml/slice_devices.h"
#include "guest/testing/driver_fake.h"

namespace carve::guest {
namespace {

// The machine has three devices, whose UUIDs begin with 01, 02 and 03; handle n is the n-th device. Four
// processes run.
nvmlDevice_t handle(uint64_t n) { return reinterpret_cast<nvmlDevice_t>(n); }

std::vector<unsigned> pids;
int calls = 0;

template <class Info>
nvmlReturn_t list(nvmlDevice_t, unsigned* count, Info* infos) {
  ++calls;
  const bool fits = pids.size() <= *count;
  *count = static_cast<unsigned>(pids.size());
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (size_t i = 0; i < pids.size(); ++i) {
    infos[i] = {};
    infos[i].pid = pids[i];
    infos[i].usedGpuMemory = 100 + i;
  }
  return NVML_SUCCESS;
}

class Nvml : public testing::Test {
 protected:
  Nvml() : slice(2, 10 << 20) {
    pids = {500, 600, 700, 800};
    on<&nvmlDeviceGetUUID>([](nvmlDevice_t d, char* text, unsigned size) {
      snprintf(text, size, "GPU-%02x000000-0000-0000-0000-000000000000",
               static_cast<unsigned>(reinterpret_cast<uint64_t>(d)));
      return NVML_SUCCESS;
    });
    on<&nvmlDeviceGetHandleByUUID>([](const char* text, nvmlDevice_t* d) {
      unsigned n = 0;
      if (sscanf(text, "GPU-%2x000000-", &n) != 1 || n < 1 || n > 3) return NVML_ERROR_NOT_FOUND;
      *d = handle(n);
      return NVML_SUCCESS;
    });
    on<&nvmlDeviceGetHandleByPciBusId_v2>([](const char* id, nvmlDevice_t* d) {
      *d = handle(static_cast<uint64_t>(id[0] - '0'));
      return NVML_SUCCESS;
    });
    on<&nvmlDeviceGetCount_v2>([](unsigned* n) {
      *n = 3;
      return NVML_SUCCESS;
    });
    on<&nvmlDeviceGetIndex>([](nvmlDevice_t d, unsigned* n) {
      *n = static_cast<unsigned>(reinterpret_cast<uint64_t>(d) - 1);
      return NVML_SUCCESS;
    });
    on<&nvmlDeviceGetMemoryInfo>([](nvmlDevice_t, nvmlMemory_t* m) {
      *m = {64 << 20, 60 << 20, 4 << 20};
      return NVML_SUCCESS;
    });
    on<&nvmlDeviceGetMemoryInfo_v2>([](nvmlDevice_t, nvmlMemory_v2_t* m) {
      if (m->version != nvml_struct_version<nvmlMemory_v2_t>(2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
      *m = {m->version, 64 << 20, 1 << 20, 60 << 20, 3 << 20};
      return NVML_SUCCESS;
    });
    on<&nvmlDeviceGetComputeRunningProcesses>(&list<nvmlProcessInfo_v1_t>);
    on<&nvmlDeviceGetComputeRunningProcesses_v3>(&list<nvmlProcessInfo_t>);
    on<&nvmlDeviceGetProcessUtilization>(
        [](nvmlDevice_t, nvmlProcessUtilizationSample_t* samples, unsigned* count, unsigned long long) {
          if (*count < pids.size() || samples == nullptr) return NVML_ERROR_INSUFFICIENT_SIZE;
          *count = static_cast<unsigned>(pids.size());
          for (size_t i = 0; i < pids.size(); ++i) samples[i] = {pids[i], 1, 2, 3, 4, 5};
          return NVML_SUCCESS;
        });
    // The granted devices are 03 and 01, in this order.
    slice.control->devices[0].uuid[0] = 3;
    slice.control->devices[1].uuid[0] = 1;
    slice.control->processes[4] = {600, 12, 0, 0, 0, 0};
    slice.control->processes[9] = {99'800, 800, 0, 0, 0, 0};  // The driver reports pids of this process's
                                                              // namespace.
  }
  Attached slice;
};

TEST_F(Nvml, shows_the_granted_devices_in_the_agents_order) {
  unsigned n = 0;
  nvmlDevice_t d = nullptr;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&n), NVML_SUCCESS);
  EXPECT_EQ(n, 2u);
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &d), NVML_SUCCESS);
  EXPECT_EQ(d, handle(3));
  EXPECT_EQ(nvmlDeviceGetIndex(d, &n), NVML_SUCCESS);
  EXPECT_EQ(n, 0u);
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(1, &d), NVML_SUCCESS);
  EXPECT_EQ(d, handle(1));
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(2, &d), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(Nvml, does_not_find_devices_that_were_not_granted) {
  nvmlDevice_t d = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByUUID("GPU-02000000-0000-0000-0000-000000000000", &d), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("2", &d), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(d, nullptr);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("1", &d), NVML_SUCCESS);
  EXPECT_EQ(d, handle(1));
}

TEST_F(Nvml, returns_only_granted_devices_in_sets_of_devices) {
  on<&nvmlSystemGetTopologyGpuSet>([](unsigned, unsigned* n, nvmlDevice_t* all) {
    for (unsigned i = 0; i < *n; ++i) all[i] = handle(i + 1);
    *n = 3;
    return NVML_SUCCESS;
  });
  unsigned n = 0;
  EXPECT_EQ(nvmlSystemGetTopologyGpuSet(0, &n, nullptr), NVML_SUCCESS);
  ASSERT_EQ(n, 2u);
  nvmlDevice_t found[3] = {};
  EXPECT_EQ(nvmlSystemGetTopologyGpuSet(0, &n, found), NVML_SUCCESS);
  EXPECT_EQ(n, 2u);
  EXPECT_EQ(found[0], handle(1));
  EXPECT_EQ(found[1], handle(3));
  EXPECT_EQ(found[2], nullptr);
  EXPECT_EQ(nvmlSystemGetTopologyGpuSet(0, &n, nullptr), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(Nvml, reports_the_quota_and_usage_of_the_slice_as_memory) {
  Reservation held(*slice.process, 0, 4_MiB);
  nvmlMemory_t v1 = {};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(handle(3), &v1), NVML_SUCCESS);
  EXPECT_EQ(v1.total, 10u << 20);
  EXPECT_EQ(v1.used, 4u << 20);
  EXPECT_EQ(v1.free, 6u << 20);
  nvmlMemory_v2_t v2 = {};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(handle(3), &v2), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  v2.version = nvml_struct_version<nvmlMemory_v2_t>(2);
  slice.control->devices[0].quota = 1 << 20;  // Below the bytes in use, which must not underflow.
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(handle(3), &v2), NVML_SUCCESS);
  EXPECT_EQ(v2.total, 1u << 20);
  EXPECT_EQ(v2.used, 1u << 20);
  EXPECT_EQ(v2.free, 0u);
  EXPECT_EQ(v2.reserved, 0u);
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(handle(2), &v1), NVML_ERROR_INVALID_ARGUMENT);
  slice.control->devices[0].memory = shm::Memory::not_limited;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(handle(3), &v1), NVML_SUCCESS);
  EXPECT_EQ(v1.total, 64u << 20);
}

TEST_F(Nvml, lists_only_the_slices_own_processes_with_their_inner_pids) {
  nvmlProcessInfo_v1_t v1[4] = {};
  unsigned n = 4;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses(handle(3), &n, v1), NVML_SUCCESS);
  ASSERT_EQ(n, 2u);
  EXPECT_EQ(v1[0].pid, 12u);
  EXPECT_EQ(v1[0].usedGpuMemory, 101u);
  EXPECT_EQ(v1[1].pid, 800u);
  nvmlProcessInfo_t v3[1] = {};
  n = 0;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(handle(3), &n, nullptr), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(n, 2u);
  n = 1;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(handle(3), &n, v3), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(n, 2u);
  slice.control->processes[4].pid = slice.control->processes[9].pid = 0;
  n = 0;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(handle(3), &n, nullptr), NVML_SUCCESS);
  EXPECT_EQ(n, 0u);
}

TEST_F(Nvml, finds_the_slices_processes_if_the_list_exceeds_the_first_buffer) {
  pids.assign(3000, 77);
  pids.push_back(600);
  nvmlProcessInfo_v1_t one[1] = {};
  unsigned n = 1;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses(handle(3), &n, one), NVML_SUCCESS);
  EXPECT_EQ(n, 1u);
  EXPECT_EQ(one[0].pid, 12u);
}

TEST_F(Nvml, gives_up_if_the_drivers_list_never_fits) {
  on<&nvmlDeviceGetComputeRunningProcesses>([](nvmlDevice_t, unsigned* count, nvmlProcessInfo_v1_t*) {
    ++calls;
    ++*count;
    return NVML_ERROR_INSUFFICIENT_SIZE;
  });
  calls = 0;
  nvmlProcessInfo_v1_t one[1] = {};
  unsigned n = 1;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses(handle(3), &n, one), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_LT(calls, 10);
}

TEST_F(Nvml, lists_only_the_slices_own_encoder_sessions) {
  on<&nvmlDeviceGetEncoderSessions>([](nvmlDevice_t, unsigned* count, nvmlEncoderSessionInfo_t* infos) {
    const bool fits = pids.size() <= *count;
    *count = static_cast<unsigned>(pids.size());
    for (size_t i = 0; i < pids.size() && fits; ++i)
      infos[i] = {.sessionId = static_cast<unsigned>(i), .pid = pids[i], .averageFps = 30};
    return fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
  });
  unsigned n = 0;
  EXPECT_EQ(nvmlDeviceGetEncoderSessions(handle(3), &n, nullptr), NVML_SUCCESS) << "only counts";
  EXPECT_EQ(n, 2u);
  nvmlEncoderSessionInfo_t two[2] = {};
  n = 1;
  EXPECT_EQ(nvmlDeviceGetEncoderSessions(handle(3), &n, two), NVML_ERROR_INSUFFICIENT_SIZE);
  n = 2;
  EXPECT_EQ(nvmlDeviceGetEncoderSessions(handle(3), &n, two), NVML_SUCCESS);
  EXPECT_EQ(two[0].pid, 12u);
  EXPECT_EQ(two[0].sessionId, 1u);
  EXPECT_EQ(two[1].pid, 800u);
  on<&nvmlDeviceGetFBCSessions>([](nvmlDevice_t, unsigned* count, nvmlFBCSessionInfo_t* infos) {
    *count = 1;
    infos[0] = {.sessionId = 5, .pid = 500};
    return NVML_SUCCESS;
  });
  nvmlFBCSessionInfo_t one = {};
  n = 1;
  EXPECT_EQ(nvmlDeviceGetFBCSessions(handle(3), &n, &one), NVML_SUCCESS);
  EXPECT_EQ(n, 0u);
  EXPECT_EQ(one.pid, 0u) << "nothing about another slice's session is written";
}

TEST_F(Nvml, accounting_covers_only_the_slices_own_processes) {
  on<&nvmlDeviceGetAccountingStats_v2>([](nvmlDevice_t, nvmlAccountingStats_v2_t* stats) {
    if (!std::ranges::count(pids, stats->pid)) return NVML_ERROR_NOT_FOUND;
    stats->maxMemoryUsage = stats->pid;
    return NVML_SUCCESS;
  });
  nvmlAccountingStats_v2_t stats = {.pid = 12};
  EXPECT_EQ(nvmlDeviceGetAccountingStats_v2(handle(3), &stats), NVML_SUCCESS);
  EXPECT_EQ(stats.maxMemoryUsage, 600u) << "the driver uses the process's outer pid";
  EXPECT_EQ(stats.pid, 12u);
  stats = {.pid = 800};
  EXPECT_EQ(nvmlDeviceGetAccountingStats_v2(handle(3), &stats), NVML_SUCCESS);
  EXPECT_EQ(stats.maxMemoryUsage, 800u) << "the driver uses the process's inner pid";
  for (const unsigned other : {500u, 600u, 700u}) {
    stats = {.pid = other};
    EXPECT_EQ(nvmlDeviceGetAccountingStats_v2(handle(3), &stats), NVML_ERROR_NOT_FOUND) << other;
    EXPECT_EQ(stats.maxMemoryUsage, 0u);
  }
}

// Each process's newest sample counts; samples of other slices do not. If the driver cannot distinguish
// processes, its own figure is returned unchanged.
TEST_F(Nvml, reports_the_sum_over_the_slices_processes_as_device_utilisation) {
  on<&nvmlDeviceGetUtilizationRates>([](nvmlDevice_t, nvmlUtilization_t* u) {
    *u = {97, 55};
    return NVML_SUCCESS;
  });
  on<&nvmlDeviceGetEncoderUtilization>([](nvmlDevice_t, unsigned* percent, unsigned* period) {
    *percent = 44;
    *period = 1000;
    return NVML_SUCCESS;
  });
  on<&nvmlDeviceGetProcessUtilization>(
      [](nvmlDevice_t, nvmlProcessUtilizationSample_t* samples, unsigned* count, unsigned long long) {
        const nvmlProcessUtilizationSample_t all[] = {
            {500, 9, 90, 40, 30, 0}, {600, 7, 50, 20, 9, 0}, {600, 8, 10, 5, 4, 0}, {800, 8, 3, 1, 2, 0}};
        if (*count < 4 || samples == nullptr) return NVML_ERROR_INSUFFICIENT_SIZE;
        std::copy(std::begin(all), std::end(all), samples);
        *count = 4;
        return NVML_SUCCESS;
      });
  nvmlUtilization_t rates = {};
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(handle(3), &rates), NVML_SUCCESS);
  EXPECT_EQ(rates.gpu, 13u);
  EXPECT_EQ(rates.memory, 6u);
  unsigned percent = 0, period = 0;
  EXPECT_EQ(nvmlDeviceGetEncoderUtilization(handle(3), &percent, &period), NVML_SUCCESS);
  EXPECT_EQ(percent, 6u);
  EXPECT_EQ(period, 1000u);
  pids = {500};
  on<&nvmlDeviceGetProcessUtilization>([](nvmlDevice_t, nvmlProcessUtilizationSample_t*, unsigned*,
                                          unsigned long long) { return NVML_ERROR_NOT_FOUND; });
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(handle(3), &rates), NVML_SUCCESS);
  EXPECT_EQ(rates.gpu, 0u);
  on<&nvmlDeviceGetProcessUtilization>([](nvmlDevice_t, nvmlProcessUtilizationSample_t*, unsigned*,
                                          unsigned long long) { return NVML_ERROR_NOT_SUPPORTED; });
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(handle(3), &rates), NVML_SUCCESS);
  EXPECT_EQ(rates.gpu, 97u);
}

TEST_F(Nvml, reports_the_slices_part_of_the_energy_of_a_shared_device) {
  on<&nvmlDeviceGetTotalEnergyConsumption>([](nvmlDevice_t, unsigned long long* energy) {
    *energy = 9000;
    return NVML_SUCCESS;
  });
  on<&nvmlDeviceGetFieldValues>([](nvmlDevice_t, int, nvmlFieldValue_t* values) {
    values[0].nvmlReturn = NVML_SUCCESS;
    values[0].value.ullVal = 9000;
    return NVML_SUCCESS;
  });
  for (unsigned i = 0; i < 2; ++i) slice.control->devices[i].energy_microjoules = 5'678'999 + i;
  const unsigned granted = granted_index(*enter().process, handle(1));
  ASSERT_NE(granted, not_granted);
  for (const bool whole : {false, true}) {
    slice.control->devices[granted].whole = whole;
    unsigned long long energy = 0;
    EXPECT_EQ(nvmlDeviceGetTotalEnergyConsumption(handle(1), &energy), NVML_SUCCESS);
    EXPECT_EQ(energy, whole ? 9000u : (5'678'999u + granted) / 1000);
    nvmlFieldValue_t value{};
    value.fieldId = NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION;
    EXPECT_EQ(nvmlDeviceGetFieldValues(handle(1), 1, &value), NVML_SUCCESS);
    EXPECT_EQ(value.nvmlReturn, NVML_SUCCESS);
    EXPECT_EQ(value.value.ullVal, energy);
  }
}

TEST_F(Nvml, reports_no_energy_if_the_driver_reports_none) {
  on<&nvmlDeviceGetTotalEnergyConsumption>(
      [](nvmlDevice_t, unsigned long long*) { return NVML_ERROR_NOT_SUPPORTED; });
  on<&nvmlDeviceGetFieldValues>([](nvmlDevice_t, int, nvmlFieldValue_t* values) {
    values[0].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
  });
  unsigned long long energy = 3;
  EXPECT_EQ(nvmlDeviceGetTotalEnergyConsumption(handle(1), &energy), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(energy, 3u);
  nvmlFieldValue_t value{};
  value.fieldId = NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION;
  EXPECT_EQ(nvmlDeviceGetFieldValues(handle(1), 1, &value), NVML_SUCCESS);
  EXPECT_EQ(value.nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
}

// Power and samples cover all programs on the device.
TEST_F(Nvml, reports_power_and_samples_only_to_a_slice_of_whole_devices) {
  on<&nvmlDeviceGetPowerUsage>([](nvmlDevice_t, unsigned* power) {
    *power = 150'000;
    return NVML_SUCCESS;
  });
  on<&nvmlDeviceGetSamples>([](nvmlDevice_t, nvmlSamplingType_t, unsigned long long, nvmlValueType_t*,
                               unsigned* count, nvmlSample_t*) {
    *count = 1;
    return NVML_SUCCESS;
  });
  on<&nvmlDeviceGetFieldValues>([](nvmlDevice_t, int count, nvmlFieldValue_t* values) {
    for (int i = 0; i < count; ++i) {
      values[i].nvmlReturn = NVML_SUCCESS;
      values[i].value.uiVal = 9;
    }
    return NVML_SUCCESS;
  });
  for (const bool whole : {false, true}) {
    for (unsigned i = 0; i < 2; ++i) slice.control->devices[i].whole = whole;
    const nvmlReturn_t expected = whole ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    unsigned power = 0, count = 0;
    EXPECT_EQ(nvmlDeviceGetPowerUsage(handle(1), &power), expected);
    EXPECT_EQ(power, whole ? 150'000u : 0u);
    EXPECT_EQ(nvmlDeviceGetSamples(handle(1), NVML_TOTAL_POWER_SAMPLES, 0, nullptr, &count, nullptr),
              expected);
    EXPECT_EQ(nvmlDeviceGetSamples(handle(1), NVML_PROCESSOR_CLK_SAMPLES, 0, nullptr, &count, nullptr),
              NVML_SUCCESS);
    nvmlFieldValue_t values[2] = {};
    values[0].fieldId = NVML_FI_DEV_POWER_INSTANT;
    values[1].fieldId = NVML_FI_DEV_ECC_CURRENT;
    EXPECT_EQ(nvmlDeviceGetFieldValues(handle(1), 2, values), NVML_SUCCESS);
    EXPECT_EQ(values[0].nvmlReturn, expected);
    EXPECT_EQ(values[0].value.uiVal, whole ? 9u : 0u);
    EXPECT_EQ(values[1].nvmlReturn, NVML_SUCCESS);
  }
}

TEST_F(Nvml, reports_utilisation_only_of_the_slices_own_processes) {
  nvmlProcessUtilizationSample_t samples[2] = {};
  unsigned n = 0;
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(handle(3), nullptr, &n, 0), NVML_ERROR_INSUFFICIENT_SIZE);
  ASSERT_EQ(n, 2u);
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(handle(3), samples, &n, 0), NVML_SUCCESS);
  EXPECT_EQ(samples[0].pid, 12u);
  EXPECT_EQ(samples[1].pid, 800u);
  pids = {500};
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(handle(3), samples, &n, 0), NVML_ERROR_NOT_FOUND);
}

// The private table that nvidia-smi uses, as in driver 550. The entries are arbitrary addresses, except for
// the three lists.
struct ProcessRow {
  unsigned pid;
  unsigned char rest[4124];
};

struct PrivateTable {
  explicit PrivateTable(uint64_t bytes) {
    for (uint64_t i = 0; i < sizeof words / sizeof *words; ++i) words[i] = 1000 + i;
    words[0] = bytes;
    for (unsigned i = 0; i < nvml_process_list_count; ++i)
      words[nvml_process_lists + i] = reinterpret_cast<uint64_t>(list);
    table = words;
    on<&nvmlInternalGetExportTable>([](const void** out, const void*) {
      *out = table;
      return NVML_SUCCESS;
    });
  }
  static nvmlReturn_t list(nvmlDevice_t, unsigned* count, void* rows) {
    if (*count < pids.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
    *count = static_cast<unsigned>(pids.size());
    for (size_t i = 0; i < pids.size(); ++i) static_cast<ProcessRow*>(rows)[i] = {pids[i], {7}};
    return NVML_SUCCESS;
  }
  static inline const void* table;
  uint64_t words[251];
};

TEST_F(Nvml, narrows_the_process_lists_of_nvidia_smi) {
  const PrivateTable theirs(2008);
  const void* table = nullptr;
  ASSERT_EQ(nvmlInternalGetExportTable(&table, nvml_process_table_id), NVML_SUCCESS);
  ASSERT_NE(table, theirs.words);
  const auto* const ours = static_cast<const uint64_t*>(table);
  for (unsigned i = 0; i < 251; ++i) {
    if (i < nvml_process_lists || i >= nvml_process_lists + nvml_process_list_count) {
      EXPECT_EQ(ours[i], theirs.words[i]) << i;
      continue;
    }
    const auto list = reinterpret_cast<decltype(&PrivateTable::list)>(ours[i]);
    std::vector<ProcessRow> rows(10);
    unsigned count = 10;
    EXPECT_EQ(list(handle(3), &count, rows.data()), NVML_SUCCESS);
    ASSERT_EQ(count, 2u);
    EXPECT_EQ(rows[0].pid, 12u);
    EXPECT_EQ(rows[1].pid, 800u);
    EXPECT_EQ(rows[1].rest[0], 7);
  }
  const void* again = nullptr;
  EXPECT_EQ(nvmlInternalGetExportTable(&again, nvml_process_table_id), NVML_SUCCESS);
  EXPECT_EQ(again, table);
}

TEST_F(Nvml, passes_unknown_private_tables_through) {
  const void* table = nullptr;
  const PrivateTable other_driver(2016);
  EXPECT_EQ(nvmlInternalGetExportTable(&table, nvml_process_table_id), NVML_SUCCESS);
  EXPECT_EQ(table, other_driver.words);
  const PrivateTable other_table(2008);
  const unsigned char id[16] = {1};
  EXPECT_EQ(nvmlInternalGetExportTable(&table, id), NVML_SUCCESS);
  EXPECT_EQ(table, other_table.words);
}

TEST(Uuid, is_written_as_nvml_writes_it) {
  const uint8_t uuid[16] = {0x3e, 0xf1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xa, 0xb, 0xc, 0xff};
  char text[uuid_text_size];
  uuid_text(uuid, text);
  EXPECT_STREQ(text, "GPU-3ef10001-0203-0405-0607-08090a0b0cff");
}

}  // namespace
}  // namespace carve::guest
