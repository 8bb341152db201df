// The commands of NV_ESC_RM_CONTROL that libcuda 525, 535 and 550 send in cuInit, and that NVML and
// nvidia-smi send for their table.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "control_rows.h"
#include "machine.h"
#include "memory.h"
#include "objects.h"

namespace responder {
namespace {

Status build_version(const Control& c) {
  for (size_t offset = 8; offset <= 24; offset += 8) {
    void* const buffer = field<void*>(c, offset);
    const size_t size = strlen(machine().version) + 1;
    if (buffer == nullptr) continue;
    if (size > word(c, 0)) return invalid_param_struct;
    if (!copy_out(buffer, machine().version, size)) return invalid_pointer;
  }
  return ok;
}

Status all_ids(const Control& c) {
  memset(c.params, 0xff, c.size);
  for (unsigned i = 0; i < machine().gpu_count; ++i) word(c, i) = gpu_id(i);
  return ok;
}

Status id_info(const Control& c) {
  const unsigned gpu = index_of(word(c, 0));
  if (gpu == machine().gpu_count) return invalid_device;
  word(c, 1) = word(c, 3) = word(c, 6) = word(c, 7) = 0;
  word(c, 2) = word(c, 8) = gpu;
  word(c, 9) = ~0u;  // No NUMA node.
  return ok;
}

Status id_info_v2(const Control& c) {
  const unsigned gpu = index_of(word(c, 0));
  if (gpu == machine().gpu_count) return invalid_device;
  word(c, 1) = word(c, 3) = word(c, 4) = word(c, 5) = 0;
  word(c, 2) = word(c, 6) = gpu;
  word(c, 7) = ~0u;
  return ok;
}

Status pci_of_id(const Control& c) {
  const unsigned gpu = index_of(word(c, 0));
  if (gpu == machine().gpu_count) return invalid_device;
  word(c, 1) = 0;
  field<uint16_t>(c, 8) = bus_of(gpu);
  field<uint16_t>(c, 10) = 0;
  return ok;
}

Status pci_info(const Control& c) {
  word(c, 0) = device_id << 16 | vendor_id;
  word(c, 1) = 0x1482 << 16 | vendor_id;
  word(c, 2) = 0xa1;
  word(c, 3) = device_id;
  return ok;
}

// Writes a UUID as 16 bytes or as text. Returns its size.
uint32_t write_uuid(unsigned gpu, bool as_bytes, uint8_t* out) {
  const uint8_t(&uuid)[16] = machine().uuid[gpu];
  if (as_bytes) {
    memcpy(out, uuid, sizeof uuid);
    return sizeof uuid;
  }
  char* text = reinterpret_cast<char*>(out);
  text += sprintf(text, "GPU-");
  for (unsigned i = 0; i < 16; ++i)
    text += sprintf(text, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
  return 41;
}

Status uuid(const Control& c) {
  word(c, 2) = write_uuid(c.gpu, (word(c, 1) & 2) != 0, c.params + 12);
  return ok;
}

Status uuid_of_id(const Control& c) {
  const unsigned gpu = index_of(word(c, 0));
  if (gpu == machine().gpu_count) return invalid_device;
  word(c, 66) = write_uuid(gpu, (word(c, 1) & 2) != 0, c.params + 8);
  return ok;
}

// NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS: 0 asks for ASCII.
Status name_string(const Control& c) {
  snprintf(reinterpret_cast<char*>(c.params + 4), 64, "%s", name);
  return ok;
}

// Classes of GA102, by which libcuda decides which engines exist.
constexpr uint32_t classes[] = {0x2080, 0x2081, 0xc697, 0xc7c0, 0xc7b5, 0xc797, 0xc6b5, 0xc56f, 0xc46f,
                                0xc461, 0xc561, 0xa06c, 0x9067, 0x90f1, 0x3e,   0x40,   0x50a0, 0x70,
                                0x71,   0x79,   0x503b, 0x503c, 0xcb33, 0xcba2, 0x83de, 0x9072, 0x90e6,
                                0x90e7, 0xc574, 0x902d, 0xa140, 0xb8b0, 0xb0b5, 0x85,   0x5080, 0xc640};

Status class_list_v2(const Control& c) {
  if (c.size < 4 + sizeof classes) return invalid_param_struct;
  word(c, 0) = sizeof classes / sizeof *classes;
  memcpy(c.params + 4, classes, sizeof classes);
  return ok;
}

// NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS: the count and a pointer; if it is null, the answer is the count.
Status class_list(const Control& c) {
  void* const list = field<void*>(c, 8);
  if (list != nullptr && word(c, 0) < sizeof classes / sizeof *classes) return invalid_param_struct;
  word(c, 0) = sizeof classes / sizeof *classes;
  return list == nullptr || copy_out(list, classes, sizeof classes) ? ok : invalid_pointer;
}

Status one_subdevice(const Control& c) {
  word(c, 0) = 1;
  return ok;
}

Status architecture(const Control& c) {
  word(c, 0) = 0x170;  // NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_GA100
  word(c, 1) = 2;      // NV2080_CTRL_MC_ARCH_INFO_IMPLEMENTATION_GA102
  word(c, 2) = 0xa1;
  return ok;
}

// NV2080_CTRL_FB_INFO: pairs of an index and an answer, in KiB.
Status memory_info(const Control& c) {
  const uint32_t count = word(c, 0);
  if (4 + size_t{8} * count > c.size) return invalid_param_struct;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t index = word(c, 1 + 2 * i);
    uint32_t& answer = word(c, 2 + 2 * i);
    switch (index) {
      case 0x07:  // RAM_SIZE
      case 0x08:  // TOTAL_RAM_SIZE
      case 0x09:  // HEAP_SIZE
      case 0x20:  // USABLE_RAM_SIZE
        answer = memory_kib;
        break;
      case 0x16:  // HEAP_FREE
        answer = memory_kib - static_cast<uint32_t>(used_video(c.gpu) >> 10);
        break;
      case 0x05: answer = bars_mib[1] << 10; break;  // BAR1_SIZE
      case 0x0b: answer = 384; break;                // BUS_WIDTH
      default: answer = 0;
    }
  }
  return ok;
}

// NV2080_CTRL_BUS_GET_INFO_V2_PARAMS: pairs of an index and an answer. libcuda reports a PCI address only for a device of type
// PCI_EXPRESS.
Status bus_info(const Control& c) {
  const uint32_t count = word(c, 0);
  if (4 + size_t{8} * count > c.size) return invalid_param_struct;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t& answer = word(c, 2 + 2 * i);
    switch (word(c, 1 + 2 * i)) {
      case 0x00:  // TYPE
      case 0x13:  // INTERFACE_TYPE
        answer = 3;
        break;
      case 0x0f: answer = bus_of(c.gpu); break;  // BUS_NUMBER
      default: answer = 0;
    }
  }
  return ok;
}

// NV2080_CTRL_BUS_GET_PCI_BAR_INFO_PARAMS: the count, then for each BAR its flags, MiB, bytes and address.
Status bars(const Control& c) {
  memset(c.params, 0, c.size);
  for (const uint32_t mib : bars_mib) {
    const uint32_t i = word(c, 0)++;
    word(c, 3 + 6 * i) = mib;
    field<uint64_t>(c, 16 + 24 * i) = uint64_t{mib} << 20;
  }
  return ok;
}

Status gpc_mask(const Control& c) {
  word(c, 0) = 0x7f;
  return ok;
}

// NV2080_CTRL_CE_GET_ALL_CAPS_PARAMS: two bytes for each of 64 copy engines (32 before driver 550), and a
// mask of the existing ones. The first two belong to the graphics engine (CE_GRCE, CE_SHARED). All can copy
// to and from system memory.
constexpr unsigned copy_engines = 5, shared_copy_engines = 2;
Status copy_engine_caps(const Control& c) {
  memset(c.params, 0, c.size);
  for (unsigned i = 0; i < copy_engines; ++i) {
    c.params[2 * i] = 0xec | (i < shared_copy_engines ? 0x03 : 0);
    c.params[2 * i + 1] = 0x03;
  }
  const bool has_64 = c.size >= 136;
  field<uint32_t>(c, has_64 ? 128 : 64) = (1 << copy_engines) - 1;
  return ok;
}

// NV2080_CTRL_GPU_GET_ENGINES_V2_PARAMS: the count, then the types (cl2080.h).
Status engines(const Control& c) {
  constexpr uint32_t graphics = 1, first_copy = 9;
  word(c, 0) = 1 + copy_engines;
  word(c, 1) = graphics;
  for (uint32_t i = 0; i < copy_engines; ++i) word(c, 2 + i) = first_copy + i;
  return ok;
}

Status address_space(const Control& c) {
  constexpr uint32_t registers = 3;
  Memory* const memory = memory_of(c.client, word(c, 0));
  word(c, 2) = memory != nullptr ? address_space_of(*memory) : registers;
  if (memory != nullptr) release(memory);
  return ok;
}

// NV2080_CTRL_GR_GET_INFO_PARAMS: the count, then a pointer to pairs of an index and an answer.
Status graphics_info(const Control& c) {
  const uint32_t count = word(c, 0);
  auto* list = field<uint32_t*>(c, 8);
  if (count > 256) return invalid_param_struct;
  for (uint32_t i = 0; i < count; ++i, list += 2) {
    uint32_t index = 0, answer = 1;
    if (!copy_in(&index, list, sizeof index)) return invalid_pointer;
    switch (index) {
      case 0x07: answer = multiprocessors / 2; break;  // SHADER_PIPE_SUB_COUNT
      case 0x09: answer = 2; break;                    // SM_REG_BANK_REG_COUNT
      case 0x0c: answer = 0x806; break;                // SM_VERSION
      case 0x0d: answer = 48; break;                   // MAX_WARPS_PER_SM
      case 0x0e: answer = 32; break;                   // MAX_THREADS_PER_WARP
      case 0x13: answer = 128; break;                  // MAX_SP_PER_SM
      case 0x14: answer = 7; break;                    // LITTER_NUM_GPCS
      case 0x15:                                       // LITTER_NUM_FBPS
      case 0x17: answer = 6; break;                    // LITTER_NUM_TPC_PER_GPC
      case 0x2a: answer = 0; break;
      default: break;
    }
    if (!copy_out(list + 1, &answer, sizeof answer)) return invalid_pointer;
  }
  return ok;
}

// NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS: 512 rows of six 16-bit numbers, then the numbers of SMs and
// TPCs.
Status multiprocessor_order(const Control& c) {
  for (unsigned i = 0; i < multiprocessors; ++i) {
    auto* const row = &field<uint16_t>(c, size_t{12} * i);
    row[0] = row[4] = static_cast<uint16_t>(i / 12);
    row[1] = static_cast<uint16_t>(i / 2 % 6);
    row[2] = static_cast<uint16_t>(i % 2);
    row[3] = row[5] = static_cast<uint16_t>(i / 2);
  }
  field<uint16_t>(c, 2 * 3072) = multiprocessors;
  field<uint16_t>(c, 2 * 3073) = multiprocessors / 2;
  return ok;
}

// Returns the list in a variable ("12,345") or, if the variable is a path, in that file, which may change
// while programs run.
const char* pid_list(const char* variable, char (&text)[1024]) {
  const char* const value = getenv(variable);
  if (value == nullptr || *value != '/') return value;
  const int file = open(value, O_RDONLY | O_CLOEXEC);
  const ssize_t size = file >= 0 ? read(file, text, sizeof text - 1) : 0;
  if (file >= 0) close(file);
  text[size > 0 ? size : 0] = 0;
  return text;
}

// Calls `take(pid)` for each process that a variable lists until it returns false.
template <class Take>
void for_each_pid(const char* variable, Take take) {
  char text[1024];
  for (const char* list = pid_list(variable, text); list != nullptr && *list != 0;) {
    char* end = nullptr;
    const uint32_t pid = static_cast<uint32_t>(strtoul(list, &end, 10));
    if (end == list || !take(pid)) return;
    list = *end == ',' ? end + 1 : end;
  }
}

// NV2080_CTRL_GPU_GET_PIDS_PARAMS: the processes that have an object of a class.
Status pids(const Control& c) {
  constexpr uint32_t compute_class = 0xc7c0;  // AMPERE_COMPUTE_B
  const bool is_compute = word(c, 1) == compute_class;
  word(c, 2) = 0;
  const auto add = [&c](uint32_t pid) {
    if (4 * size_t{4 + word(c, 2)} > c.size) return false;
    word(c, 3 + word(c, 2)++) = pid;
    return true;
  };
  for_each_pid("RESPONDER_PIDS", add);
  if (is_compute) for_each_pid("RESPONDER_COMPUTE_PIDS", add);
  return ok;
}

// NV2080_CTRL_GPU_GET_PID_INFO_PARAMS: the count, then up to 200 rows with the pid, the query, the result and
// the answer. Each process has 100 MiB.
Status pid_info(const Control& c) {
  const size_t row = (c.size - 8) / 200;
  for (uint32_t i = 0; i < word(c, 0) && i < 200; ++i) {
    field<uint32_t>(c, 8 + i * row + 8) = ok;
    field<uint64_t>(c, 8 + i * row + 16) = 100 << 20;
  }
  return ok;
}

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// NV2080_CTRL_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO_PARAMS: the second byte is the number of samples; each
// has the CPU's time in us and the device's in ns. The responder uses the CPU's clock for the device.
Status time_correlation(const Control& c) {
  const uint64_t time = now_ns();
  for (size_t i = 0; i < c.params[1] && 8 + 16 * (i + 1) <= c.size; ++i) {
    field<uint64_t>(c, 8 + 16 * i) = time / 1000;
    field<uint64_t>(c, 16 + 16 * i) = time;
  }
  return ok;
}

// NV2080_CTRL_PERF_GET_GPUMON_PERFMON_UTIL_SAMPLES_V2_PARAMS: the size of the ring, the number of samples and
// the end of the ring, then 72 samples. A sample is a time and 116 bytes for each engine (memory and graphics
// come first): the load in 1/100 percent, a scale and a pid. The processes use both engines at 40 percent,
// one after the other. NVML starts counting after the first sample.
Status utilization(const Control& c) {
  constexpr size_t ring = 16, samples = 72, engine_bytes = 116;
  const size_t row = word(c, 1) / samples;
  if (ring + samples * row > c.size || row < 8 + 2 * engine_bytes) return invalid_param_struct;
  uint32_t count = 0;
  const auto add = [&c, &count, row, time = now_ns()](uint32_t pid) {
    const size_t at = ring + row * count++;
    field<uint64_t>(c, at) = time - 1'000'000 * (samples - count);
    for (size_t i = 0; 8 + (i + 1) * engine_bytes <= row; ++i) {
      field<uint32_t>(c, at + 8 + i * engine_bytes) = i < 2 && pid != ~0u ? 4000 : 0;
      field<uint32_t>(c, at + 16 + i * engine_bytes) = i < 2 ? pid : ~0u;
    }
    return count < samples;
  };
  add(~0u);
  for (const char* variable : {"RESPONDER_PIDS", "RESPONDER_COMPUTE_PIDS"})
    if (count < samples) for_each_pid(variable, add);
  word(c, 2) = count;
  word(c, 3) = count % samples;
  return ok;
}

// Answers the commands for the clocks, which the runtime sends. NVIDIA has not published these three
// commands; the positions of the answers were found from the values in cudaDeviceProp.
Status clocks_known(const Control& c) {
  word(c, 0) = word(c, 1) = ~0u;
  return ok;
}
Status clock_domains(const Control& c) {
  word(c, 1) = 5;
  return ok;
}
Status clocks(const Control& c) {
  word(c, 3) = word(c, 5) = 1'695'000;  // Clock of the multiprocessors in kHz.
  word(c, 7) = word(c, 9) = 6'251'000;  // Clock of the memory.
  return ok;
}

constexpr ControlRow rows[] = {
    {0x101, 32, build_version},                // SYSTEM_GET_BUILD_VERSION
    {0x127, 0, unchanged},                     // SYSTEM_GET_P2P_CAPS
    {0x12b, 0, unchanged},                     // SYSTEM_GET_P2P_CAPS_V2
    {0x136, 4, unchanged},                     // SYSTEM_GET_FABRIC_STATUS
    {0x13a, 0, unchanged},                     // SYSTEM_GET_P2P_CAPS_MATRIX
    {0x1f0, 4, unchanged},                     // SYSTEM_GET_FEATURES
    {0x201, 4 * max_gpus, all_ids},            // GPU_GET_ATTACHED_IDS
    {0x202, 40, id_info},                      // GPU_GET_ID_INFO
    {0x205, 32, id_info_v2},                   // GPU_GET_ID_INFO_V2
    {0x214, 4 * max_gpus, all_ids},            // GPU_GET_PROBED_IDS
    {0x215, 0, unchanged},                     // GPU_ATTACH_IDS
    {0x216, 0, unchanged},                     // GPU_DETACH_IDS
    {0x21b, 12, pci_of_id},                    // GPU_GET_PCI_INFO
    {0x275, 268, uuid_of_id},                  // GPU_GET_UUID_FROM_GPU_ID
    {0x279, 12, unchanged},                    // GPU_QUERY_DRAIN_STATE
    {0x27b, 4, unchanged},                     // GPU_GET_MEMOP_ENABLE
    {0x289, 4, unchanged},                     // GPU_ASYNC_ATTACH_ID
    {0xa04, 0, unchanged},                     // SYNC_GPU_BOOST_GROUP_INFO
    {0xd01, 12, address_space},                // CLIENT_GET_ADDR_SPACE_TYPE
    {0xd04, 12, unchanged},                    // CLIENT_SET_INHERITED_SHARE_POLICY
    {0x730102, 12, unchanged},                 // SYSTEM_GET_NUM_HEADS
    {0x730126, 0, unchanged},                  //
    {0x800201, 16, class_list},                // GPU_GET_CLASSLIST
    {0x800280, 4, one_subdevice},              // GPU_GET_NUM_SUBDEVICES
    {0x800288, 4, unchanged},                  // GPU_QUERY_SW_STATE_PERSISTENCE
    {0x800289, 4, unchanged},                  // GPU_GET_VIRTUALIZATION_MODE
    {0x80028e, 1, unchanged},                  // GPU_GET_VGX_CAPS
    {0x800292, 4, class_list_v2},              // GPU_GET_CLASSLIST_V2
    {0x800294, 4, unchanged},                  // GPU_GET_BRAND_CAPS
    {0x801307, 3, unchanged},                  // FB_GET_CAPS_V2
    {0x801402, 3, unchanged},                  // HOST_GET_CAPS_V2
    {0x20800102, 0, unchanged},                // GPU_GET_INFO_V2
    {0x20800110, 68, name_string},             // GPU_GET_NAME_STRING
    {0x20800111, 0, unchanged},                // GPU_GET_SHORT_NAME_STRING
    {0x20800119, 4, unchanged},                // GPU_GET_SIMULATION_INFO
    {0x2080012f, 0, unchanged},                // GPU_QUERY_ECC_STATUS
    {0x20800131, 4, unchanged},                // GPU_QUERY_COMPUTE_MODE_RULES
    {0x20800133, 8, unchanged},                // GPU_QUERY_ECC_CONFIGURATION
    {0x2080014a, 268, uuid},                   // GPU_GET_GID_INFO
    {0x2080014b, 0, unchanged},                // GPU_GET_INFOROM_OBJECT_VERSION
    {0x20800157, 0, unchanged},                // GPU_QUERY_INFOROM_ECC_SUPPORT
    {0x20800170, 28, engines},                 // GPU_GET_ENGINES_V2
    {0x2080018b, 0, unchanged},                // GPU_GET_ACTIVE_PARTITION_IDS
    {0x2080018d, 12, pids},                    // GPU_GET_PIDS
    {0x2080018e, 4808, pid_info},              // GPU_GET_PID_INFO
    {0x20800406, 24, time_correlation},        // TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO
    {0x20801201, 16, graphics_info},           // GR_GET_INFO
    {0x2080121b, 6148, multiprocessor_order},  // GR_GET_GLOBAL_SM_ORDER
    {0x20801227, 0, unchanged},                // GR_GET_CAPS_V2
    {0x2080122a, 4, gpc_mask},                 // GR_GET_GPC_MASK
    {0x20801303, 4, memory_info},              // FB_GET_INFO_V2
    {0x20801701, 12, architecture},            // MC_GET_ARCH_INFO
    {0x20801801, 16, pci_info},                // BUS_GET_PCI_INFO
    {0x20801803, 200, bars},                   // BUS_GET_PCI_BAR_INFO
    {0x20801823, 4, bus_info},                 // BUS_GET_INFO_V2
    {0x2080182a, 0, unchanged},                // BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS
    {0x2080182b, 0, unchanged},                // BUS_GET_C2C_INFO
    {0x20802068, 4, unchanged},                // PERF_GET_CURRENT_PSTATE
    {0x20802096, 16, utilization},             // PERF_GET_GPUMON_PERFMON_UTIL_SAMPLES_V2
    {0x20802209, 4, unchanged},                // RC_GET_WATCHDOG_INFO
    {0x2080220c, 0, unchanged},                // RC_RELEASE_WATCHDOG_REQUESTS
    {0x20802210, 0, unchanged},                // RC_SOFT_DISABLE_WATCHDOG
    {0x20802a0a, 68, copy_engine_caps},        // CE_GET_ALL_CAPS
    {0x20803002, 0, unchanged},                // NVLINK_GET_NVLINK_STATUS
    {0x20803601, 0, unchanged},                // GSP_GET_FEATURES
    {0x20809001, 8, clocks_known},
    {0x20809009, 8, clock_domains},
    {0x20809064, 40, clocks},
    {0x208f1105, 0, unchanged},  // GPU_VERIFY_INFOROM
    {0xcb330101, 0, unchanged},  // NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_CAPABILITIES
};

// Commands of NVIDIA's closed interface that must succeed for libcuda and NVML; their meaning is not
// published.
constexpr uint32_t unpublished[] = {0x809909,   0x20800145, 0x20800146, 0x20808159, 0x20808161,
                                    0x20808162, 0x2080a026, 0x2080a084, 0x20810108};

}  // namespace

Status answer_control(Control& control) {
  for (const uint32_t command : unpublished)
    if (command == control.command) return ok;
  Status status = not_supported;
  if (!answer_by(rows, control, status)) answer_context_control(control, status);
  return status;
}

}  // namespace responder
