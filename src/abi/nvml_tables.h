// The private table of NVML from which nvidia-smi takes its lists of processes, instead of the exported functions.
//
// nvmlInternalGetExportTable returns an array for an id: its size in bytes, then addresses. Found with the
// drivers 525.147, 535.261 and 550.163: entries 213, 214 and 215 list the processes with compute, graphics
// and MPS contexts. They are called as f(device, &count, rows), with the rules of
// nvmlDeviceGetComputeRunningProcesses. A row begins with the pid. tests/nvidia/test_smi.py calls all of
// them.
#pragma once

#include <cstdint>

namespace carve {

inline constexpr unsigned char nvml_process_table_id[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                                            0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
inline constexpr unsigned nvml_process_lists = 213, nvml_process_list_count = 3;

// The tables for which these entries were verified. The size grows with each driver branch.
struct NvmlProcessTable {
  uint64_t table_bytes;
  unsigned row_bytes;
};
inline constexpr NvmlProcessTable nvml_process_tables[] = {
    {1904, 4120},  // 525.147.05
    {1960, 4128},  // 535.261.03
    {2008, 4128},  // 550.163.01
};

// Returns null for another driver's table.
constexpr const NvmlProcessTable* find_process_table(uint64_t table_bytes) {
  for (const NvmlProcessTable& known : nvml_process_tables)
    if (known.table_bytes == table_bytes) return &known;
  return nullptr;
}

}  // namespace carve
