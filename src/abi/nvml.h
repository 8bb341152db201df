// NVML, the management interface, as libnvidia-ml.so.1 exports it: the part about devices, memory, processes,
// utilisation, health, topology and events. No macro renames a call: the newest ABI is spelled with its
// suffix _v2 or _v3, and the bare name is the oldest. Source: NVIDIA's nvml.h of CUDA 12.9.
//
// There are two pitfalls. The process structures of the _v1, _v2 and _v3 variants of one call differ in size
// (16, 24, 24 bytes). A structure whose first word is `version` must be initialised with
// nvml_struct_version<itself>(revision).
#pragma once

#include <stddef.h>
#include <stdint.h>

// clang-format off
enum nvmlReturn_t {
  NVML_SUCCESS = 0, NVML_ERROR_UNINITIALIZED = 1, NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3, NVML_ERROR_NO_PERMISSION = 4, NVML_ERROR_ALREADY_INITIALIZED = 5,
  NVML_ERROR_NOT_FOUND = 6, NVML_ERROR_INSUFFICIENT_SIZE = 7, NVML_ERROR_INSUFFICIENT_POWER = 8,
  NVML_ERROR_DRIVER_NOT_LOADED = 9, NVML_ERROR_TIMEOUT = 10, NVML_ERROR_IRQ_ISSUE = 11,
  NVML_ERROR_LIBRARY_NOT_FOUND = 12, NVML_ERROR_FUNCTION_NOT_FOUND = 13, NVML_ERROR_CORRUPTED_INFOROM = 14,
  NVML_ERROR_GPU_IS_LOST = 15, NVML_ERROR_RESET_REQUIRED = 16, NVML_ERROR_OPERATING_SYSTEM = 17,
  NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18, NVML_ERROR_IN_USE = 19, NVML_ERROR_MEMORY = 20,
  NVML_ERROR_NO_DATA = 21, NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22, NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
  NVML_ERROR_FREQ_NOT_SUPPORTED = 24, NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25, NVML_ERROR_DEPRECATED = 26,
  NVML_ERROR_NOT_READY = 27, NVML_ERROR_GPU_NOT_FOUND = 28, NVML_ERROR_INVALID_STATE = 29,
  NVML_ERROR_UNKNOWN = 999
};

enum nvmlBrandType_t {
  NVML_BRAND_UNKNOWN = 0, NVML_BRAND_QUADRO = 1, NVML_BRAND_TESLA = 2, NVML_BRAND_NVS = 3,
  NVML_BRAND_GRID = 4, NVML_BRAND_GEFORCE = 5, NVML_BRAND_TITAN = 6, NVML_BRAND_NVIDIA_VAPPS = 7,
  NVML_BRAND_NVIDIA_VPC = 8, NVML_BRAND_NVIDIA_VCS = 9, NVML_BRAND_NVIDIA_VWS = 10,
  NVML_BRAND_NVIDIA_CLOUD_GAMING = 11, NVML_BRAND_NVIDIA_VGAMING = 11, NVML_BRAND_QUADRO_RTX = 12,
  NVML_BRAND_NVIDIA_RTX = 13, NVML_BRAND_NVIDIA = 14, NVML_BRAND_GEFORCE_RTX = 15, NVML_BRAND_TITAN_RTX = 16,
  NVML_BRAND_COUNT = 17
};

enum nvmlInforomObject_t {
  NVML_INFOROM_OEM = 0, NVML_INFOROM_ECC = 1, NVML_INFOROM_POWER = 2, NVML_INFOROM_DEN = 3,
  NVML_INFOROM_COUNT = 4
};

enum nvmlEnableState_t { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 };

enum nvmlComputeMode_t {
  NVML_COMPUTEMODE_DEFAULT = 0, NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1, NVML_COMPUTEMODE_PROHIBITED = 2,
  NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3, NVML_COMPUTEMODE_COUNT = 4
};

enum nvmlClockType_t {
  NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_VIDEO = 3, NVML_CLOCK_COUNT = 4
};

enum nvmlClockId_t {
  NVML_CLOCK_ID_CURRENT = 0, NVML_CLOCK_ID_APP_CLOCK_TARGET = 1, NVML_CLOCK_ID_APP_CLOCK_DEFAULT = 2,
  NVML_CLOCK_ID_CUSTOMER_BOOST_MAX = 3, NVML_CLOCK_ID_COUNT = 4
};

enum nvmlGpuOperationMode_t { NVML_GOM_ALL_ON = 0, NVML_GOM_COMPUTE = 1, NVML_GOM_LOW_DP = 2 };

enum nvmlPstates_t {
  NVML_PSTATE_0 = 0, NVML_PSTATE_1 = 1, NVML_PSTATE_2 = 2, NVML_PSTATE_3 = 3, NVML_PSTATE_4 = 4,
  NVML_PSTATE_5 = 5, NVML_PSTATE_6 = 6, NVML_PSTATE_7 = 7, NVML_PSTATE_8 = 8, NVML_PSTATE_9 = 9,
  NVML_PSTATE_10 = 10, NVML_PSTATE_11 = 11, NVML_PSTATE_12 = 12, NVML_PSTATE_13 = 13, NVML_PSTATE_14 = 14,
  NVML_PSTATE_15 = 15, NVML_PSTATE_UNKNOWN = 32
};

enum nvmlSamplingType_t {
  NVML_TOTAL_POWER_SAMPLES = 0, NVML_GPU_UTILIZATION_SAMPLES = 1, NVML_MEMORY_UTILIZATION_SAMPLES = 2,
  NVML_ENC_UTILIZATION_SAMPLES = 3, NVML_DEC_UTILIZATION_SAMPLES = 4, NVML_PROCESSOR_CLK_SAMPLES = 5,
  NVML_MEMORY_CLK_SAMPLES = 6, NVML_MODULE_POWER_SAMPLES = 7, NVML_JPG_UTILIZATION_SAMPLES = 8,
  NVML_OFA_UTILIZATION_SAMPLES = 9, NVML_SAMPLINGTYPE_COUNT = 10
};

enum nvmlValueType_t {
  NVML_VALUE_TYPE_DOUBLE = 0, NVML_VALUE_TYPE_UNSIGNED_INT = 1, NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
  NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3, NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4,
  NVML_VALUE_TYPE_SIGNED_INT = 5, NVML_VALUE_TYPE_UNSIGNED_SHORT = 6, NVML_VALUE_TYPE_COUNT = 7
};

enum nvmlTemperatureSensors_t { NVML_TEMPERATURE_GPU = 0, NVML_TEMPERATURE_COUNT = 1 };

enum nvmlTemperatureThresholds_t {
  NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
  NVML_TEMPERATURE_THRESHOLD_MEM_MAX = 2, NVML_TEMPERATURE_THRESHOLD_GPU_MAX = 3,
  NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN = 4, NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR = 5,
  NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX = 6, NVML_TEMPERATURE_THRESHOLD_GPS_CURR = 7,
  NVML_TEMPERATURE_THRESHOLD_COUNT = 8
};

enum nvmlPerfPolicyType_t {
  NVML_PERF_POLICY_POWER = 0, NVML_PERF_POLICY_THERMAL = 1, NVML_PERF_POLICY_SYNC_BOOST = 2,
  NVML_PERF_POLICY_BOARD_LIMIT = 3, NVML_PERF_POLICY_LOW_UTILIZATION = 4, NVML_PERF_POLICY_RELIABILITY = 5,
  NVML_PERF_POLICY_TOTAL_APP_CLOCKS = 10, NVML_PERF_POLICY_TOTAL_BASE_CLOCKS = 11,
  NVML_PERF_POLICY_COUNT = 12
};

enum nvmlMemoryErrorType_t {
  NVML_MEMORY_ERROR_TYPE_CORRECTED = 0, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1,
  NVML_MEMORY_ERROR_TYPE_COUNT = 2
};

enum nvmlEccCounterType_t { NVML_VOLATILE_ECC = 0, NVML_AGGREGATE_ECC = 1, NVML_ECC_COUNTER_TYPE_COUNT = 2 };

enum nvmlMemoryLocation_t {
  NVML_MEMORY_LOCATION_L1_CACHE = 0, NVML_MEMORY_LOCATION_L2_CACHE = 1, NVML_MEMORY_LOCATION_DRAM = 2,
  NVML_MEMORY_LOCATION_DEVICE_MEMORY = 2, NVML_MEMORY_LOCATION_REGISTER_FILE = 3,
  NVML_MEMORY_LOCATION_TEXTURE_MEMORY = 4, NVML_MEMORY_LOCATION_TEXTURE_SHM = 5, NVML_MEMORY_LOCATION_CBU = 6,
  NVML_MEMORY_LOCATION_SRAM = 7, NVML_MEMORY_LOCATION_COUNT = 8
};

enum nvmlPageRetirementCause_t {
  NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS = 0,
  NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR = 1, NVML_PAGE_RETIREMENT_CAUSE_COUNT = 2
};

enum nvmlNvLinkCapability_t {
  NVML_NVLINK_CAP_P2P_SUPPORTED = 0, NVML_NVLINK_CAP_SYSMEM_ACCESS = 1, NVML_NVLINK_CAP_P2P_ATOMICS = 2,
  NVML_NVLINK_CAP_SYSMEM_ATOMICS = 3, NVML_NVLINK_CAP_SLI_BRIDGE = 4, NVML_NVLINK_CAP_VALID = 5,
  NVML_NVLINK_CAP_COUNT = 6
};

enum nvmlNvLinkErrorCounter_t {
  NVML_NVLINK_ERROR_DL_REPLAY = 0, NVML_NVLINK_ERROR_DL_RECOVERY = 1, NVML_NVLINK_ERROR_DL_CRC_FLIT = 2,
  NVML_NVLINK_ERROR_DL_CRC_DATA = 3, NVML_NVLINK_ERROR_DL_ECC_DATA = 4, NVML_NVLINK_ERROR_COUNT = 5
};

enum nvmlIntNvLinkDeviceType_t {
  NVML_NVLINK_DEVICE_TYPE_GPU = 0, NVML_NVLINK_DEVICE_TYPE_IBMNPU = 1, NVML_NVLINK_DEVICE_TYPE_SWITCH = 2,
  NVML_NVLINK_DEVICE_TYPE_UNKNOWN = 255
};

enum nvmlGpuP2PCapsIndex_t {
  NVML_P2P_CAPS_INDEX_READ = 0, NVML_P2P_CAPS_INDEX_WRITE = 1, NVML_P2P_CAPS_INDEX_NVLINK = 2,
  NVML_P2P_CAPS_INDEX_ATOMICS = 3, NVML_P2P_CAPS_INDEX_PCI = 4, NVML_P2P_CAPS_INDEX_PROP = 4,
  NVML_P2P_CAPS_INDEX_UNKNOWN = 5
};

enum nvmlGpuP2PStatus_t {
  NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_CHIPSET_NOT_SUPPORED = 1, NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED = 1,
  NVML_P2P_STATUS_GPU_NOT_SUPPORTED = 2, NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED = 3,
  NVML_P2P_STATUS_DISABLED_BY_REGKEY = 4, NVML_P2P_STATUS_NOT_SUPPORTED = 5, NVML_P2P_STATUS_UNKNOWN = 6
};

enum nvmlPcieUtilCounter_t {
  NVML_PCIE_UTIL_TX_BYTES = 0, NVML_PCIE_UTIL_RX_BYTES = 1, NVML_PCIE_UTIL_COUNT = 2
};

enum nvmlGpuTopologyLevel_t {
  NVML_TOPOLOGY_INTERNAL = 0, NVML_TOPOLOGY_SINGLE = 10, NVML_TOPOLOGY_MULTIPLE = 20,
  NVML_TOPOLOGY_HOSTBRIDGE = 30, NVML_TOPOLOGY_NODE = 40, NVML_TOPOLOGY_SYSTEM = 50
};

enum nvmlHostVgpuMode_t { NVML_HOST_VGPU_MODE_NON_SRIOV = 0, NVML_HOST_VGPU_MODE_SRIOV = 1 };

enum nvmlGpuVirtualizationMode_t {
  NVML_GPU_VIRTUALIZATION_MODE_NONE = 0, NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH = 1,
  NVML_GPU_VIRTUALIZATION_MODE_VGPU = 2, NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU = 3,
  NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA = 4
};

// Field identifiers of nvmlDeviceGetFieldValues.
enum nvmlFieldIds : unsigned {
  NVML_FI_DEV_ECC_CURRENT = 1, NVML_FI_DEV_ECC_PENDING = 2, NVML_FI_DEV_ECC_SBE_VOL_TOTAL = 3,
  NVML_FI_DEV_ECC_DBE_VOL_TOTAL = 4, NVML_FI_DEV_ECC_SBE_AGG_TOTAL = 5, NVML_FI_DEV_ECC_DBE_AGG_TOTAL = 6,
  NVML_FI_DEV_ECC_SBE_VOL_L1 = 7, NVML_FI_DEV_ECC_DBE_VOL_L1 = 8, NVML_FI_DEV_ECC_SBE_VOL_L2 = 9,
  NVML_FI_DEV_ECC_DBE_VOL_L2 = 10, NVML_FI_DEV_ECC_SBE_VOL_DEV = 11, NVML_FI_DEV_ECC_DBE_VOL_DEV = 12,
  NVML_FI_DEV_ECC_SBE_VOL_REG = 13, NVML_FI_DEV_ECC_DBE_VOL_REG = 14, NVML_FI_DEV_ECC_SBE_VOL_TEX = 15,
  NVML_FI_DEV_ECC_DBE_VOL_TEX = 16, NVML_FI_DEV_ECC_DBE_VOL_CBU = 17, NVML_FI_DEV_ECC_SBE_AGG_L1 = 18,
  NVML_FI_DEV_ECC_DBE_AGG_L1 = 19, NVML_FI_DEV_ECC_SBE_AGG_L2 = 20, NVML_FI_DEV_ECC_DBE_AGG_L2 = 21,
  NVML_FI_DEV_ECC_SBE_AGG_DEV = 22, NVML_FI_DEV_ECC_DBE_AGG_DEV = 23, NVML_FI_DEV_ECC_SBE_AGG_REG = 24,
  NVML_FI_DEV_ECC_DBE_AGG_REG = 25, NVML_FI_DEV_ECC_SBE_AGG_TEX = 26, NVML_FI_DEV_ECC_DBE_AGG_TEX = 27,
  NVML_FI_DEV_ECC_DBE_AGG_CBU = 28, NVML_FI_DEV_RETIRED_SBE = 29, NVML_FI_DEV_RETIRED_DBE = 30,
  NVML_FI_DEV_RETIRED_PENDING = 31, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0 = 32,
  NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L1 = 33, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L2 = 34,
  NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L3 = 35, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L4 = 36,
  NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L5 = 37, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL = 38,
  NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L0 = 39, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L1 = 40,
  NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L2 = 41, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L3 = 42,
  NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L4 = 43, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L5 = 44,
  NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL = 45, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L0 = 46,
  NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L1 = 47, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L2 = 48,
  NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L3 = 49, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L4 = 50,
  NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L5 = 51, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL = 52,
  NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L0 = 53, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L1 = 54,
  NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L2 = 55, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L3 = 56,
  NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L4 = 57, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L5 = 58,
  NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL = 59, NVML_FI_DEV_NVLINK_BANDWIDTH_C0_L0 = 60,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C0_L1 = 61, NVML_FI_DEV_NVLINK_BANDWIDTH_C0_L2 = 62,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C0_L3 = 63, NVML_FI_DEV_NVLINK_BANDWIDTH_C0_L4 = 64,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C0_L5 = 65, NVML_FI_DEV_NVLINK_BANDWIDTH_C0_TOTAL = 66,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L0 = 67, NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L1 = 68,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L2 = 69, NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L3 = 70,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L4 = 71, NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L5 = 72,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C1_TOTAL = 73, NVML_FI_DEV_PERF_POLICY_POWER = 74,
  NVML_FI_DEV_PERF_POLICY_THERMAL = 75, NVML_FI_DEV_PERF_POLICY_SYNC_BOOST = 76,
  NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT = 77, NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION = 78,
  NVML_FI_DEV_PERF_POLICY_RELIABILITY = 79, NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS = 80,
  NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS = 81, NVML_FI_DEV_MEMORY_TEMP = 82,
  NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION = 83, NVML_FI_DEV_NVLINK_SPEED_MBPS_L0 = 84,
  NVML_FI_DEV_NVLINK_SPEED_MBPS_L1 = 85, NVML_FI_DEV_NVLINK_SPEED_MBPS_L2 = 86,
  NVML_FI_DEV_NVLINK_SPEED_MBPS_L3 = 87, NVML_FI_DEV_NVLINK_SPEED_MBPS_L4 = 88,
  NVML_FI_DEV_NVLINK_SPEED_MBPS_L5 = 89, NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON = 90,
  NVML_FI_DEV_NVLINK_LINK_COUNT = 91, NVML_FI_DEV_RETIRED_PENDING_SBE = 92,
  NVML_FI_DEV_RETIRED_PENDING_DBE = 93, NVML_FI_DEV_PCIE_REPLAY_COUNTER = 94,
  NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER = 95, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6 = 96,
  NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L7 = 97, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L8 = 98,
  NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L9 = 99, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L10 = 100,
  NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L11 = 101, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L6 = 102,
  NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L7 = 103, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L8 = 104,
  NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L9 = 105, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L10 = 106,
  NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L11 = 107, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L6 = 108,
  NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L7 = 109, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L8 = 110,
  NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L9 = 111, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L10 = 112,
  NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L11 = 113, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L6 = 114,
  NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L7 = 115, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L8 = 116,
  NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L9 = 117, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L10 = 118,
  NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L11 = 119, NVML_FI_DEV_NVLINK_BANDWIDTH_C0_L6 = 120,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C0_L7 = 121, NVML_FI_DEV_NVLINK_BANDWIDTH_C0_L8 = 122,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C0_L9 = 123, NVML_FI_DEV_NVLINK_BANDWIDTH_C0_L10 = 124,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C0_L11 = 125, NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L6 = 126,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L7 = 127, NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L8 = 128,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L9 = 129, NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L10 = 130,
  NVML_FI_DEV_NVLINK_BANDWIDTH_C1_L11 = 131, NVML_FI_DEV_NVLINK_SPEED_MBPS_L6 = 132,
  NVML_FI_DEV_NVLINK_SPEED_MBPS_L7 = 133, NVML_FI_DEV_NVLINK_SPEED_MBPS_L8 = 134,
  NVML_FI_DEV_NVLINK_SPEED_MBPS_L9 = 135, NVML_FI_DEV_NVLINK_SPEED_MBPS_L10 = 136,
  NVML_FI_DEV_NVLINK_SPEED_MBPS_L11 = 137, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138,
  NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 139, NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX = 140,
  NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX = 141, NVML_FI_DEV_REMAPPED_COR = 142,
  NVML_FI_DEV_REMAPPED_UNC = 143, NVML_FI_DEV_REMAPPED_PENDING = 144, NVML_FI_DEV_REMAPPED_FAILURE = 145,
  NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID = 146, NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT = 147,
  NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L0 = 148, NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L1 = 149,
  NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L2 = 150, NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L3 = 151,
  NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L4 = 152, NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L5 = 153,
  NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L6 = 154, NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L7 = 155,
  NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L8 = 156, NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L9 = 157,
  NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L10 = 158, NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L11 = 159,
  NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL = 160, NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY = 161,
  NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY = 162, NVML_FI_DEV_NVLINK_ERROR_DL_CRC = 163,
  NVML_FI_DEV_NVLINK_GET_SPEED = 164, NVML_FI_DEV_NVLINK_GET_STATE = 165,
  NVML_FI_DEV_NVLINK_GET_VERSION = 166, NVML_FI_DEV_NVLINK_GET_POWER_STATE = 167,
  NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD = 168, NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER = 169,
  NVML_FI_DEV_C2C_LINK_COUNT = 170, NVML_FI_DEV_C2C_LINK_GET_STATUS = 171,
  NVML_FI_DEV_C2C_LINK_GET_MAX_BW = 172, NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS = 173,
  NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED = 174, NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR = 175,
  NVML_FI_DEV_PCIE_COUNT_BAD_TLP = 176, NVML_FI_DEV_PCIE_COUNT_NAKS_SENT = 177,
  NVML_FI_DEV_PCIE_COUNT_BAD_DLLP = 178, NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR = 179,
  NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR = 180, NVML_FI_DEV_PCIE_COUNT_UNSUPPORTED_REQ = 181,
  NVML_FI_DEV_PCIE_COUNT_LCRC_ERROR = 182, NVML_FI_DEV_PCIE_COUNT_LANE_ERROR = 183,
  NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED = 184, NVML_FI_DEV_POWER_AVERAGE = 185,
  NVML_FI_DEV_POWER_INSTANT = 186, NVML_FI_DEV_POWER_MIN_LIMIT = 187, NVML_FI_DEV_POWER_MAX_LIMIT = 188,
  NVML_FI_DEV_POWER_DEFAULT_LIMIT = 189, NVML_FI_DEV_POWER_CURRENT_LIMIT = 190, NVML_FI_DEV_ENERGY = 191,
  NVML_FI_DEV_POWER_REQUESTED_LIMIT = 192, NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT = 193,
  NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT = 194, NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT = 195,
  NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT = 196, NVML_FI_DEV_PCIE_COUNT_TX_BYTES = 197,
  NVML_FI_DEV_PCIE_COUNT_RX_BYTES = 198, NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE = 199,
  NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_MAX = 200, NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS = 201,
  NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES = 202, NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS = 203,
  NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES = 204, NVML_FI_DEV_NVLINK_COUNT_VL15_DROPPED = 205,
  NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS = 206,
  NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS = 207, NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS = 208,
  NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS = 209, NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS = 210,
  NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS = 211, NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS = 212,
  NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS = 213,
  NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS = 214,
  NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS = 215, NVML_FI_DEV_NVLINK_COUNT_RAW_BER_LANE0 = 216,
  NVML_FI_DEV_NVLINK_COUNT_RAW_BER_LANE1 = 217, NVML_FI_DEV_NVLINK_COUNT_RAW_BER = 218,
  NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS = 219, NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER = 220,
  NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS = 221, NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER = 222,
  NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_MIN = 223, NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_UNITS = 224,
  NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_SUPPORTED = 225, NVML_FI_DEV_RESET_STATUS = 226,
  NVML_FI_DEV_DRAIN_AND_RESET_STATUS = 227, NVML_FI_DEV_PCIE_OUTBOUND_ATOMICS_MASK = 228,
  NVML_FI_DEV_PCIE_INBOUND_ATOMICS_MASK = 229, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230,
  NVML_FI_DEV_C2C_LINK_ERROR_INTR = 231, NVML_FI_DEV_C2C_LINK_ERROR_REPLAY = 232,
  NVML_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B = 233, NVML_FI_DEV_C2C_LINK_POWER_STATE = 234,
  NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0 = 235, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_1 = 236,
  NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_2 = 237, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_3 = 238,
  NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_4 = 239, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_5 = 240,
  NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_6 = 241, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_7 = 242,
  NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_8 = 243, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_9 = 244,
  NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_10 = 245, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_11 = 246,
  NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_12 = 247, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_13 = 248,
  NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_14 = 249, NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_15 = 250
  // The following fields were renumbered between 12.9 and 13.0, so a number is ambiguous without the version.
};
// clang-format on

inline constexpr unsigned NVML_INIT_FLAG_NO_GPUS = 1, NVML_INIT_FLAG_NO_ATTACH = 2;
// Sizes of the caller's text buffers, including the terminating NUL.
inline constexpr unsigned NVML_DEVICE_UUID_BUFFER_SIZE = 80, NVML_DEVICE_UUID_V2_BUFFER_SIZE = 96,
                          NVML_DEVICE_NAME_BUFFER_SIZE = 64, NVML_DEVICE_NAME_V2_BUFFER_SIZE = 96,
                          NVML_DEVICE_SERIAL_BUFFER_SIZE = 30, NVML_DEVICE_PART_NUMBER_BUFFER_SIZE = 80,
                          NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE = 32, NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE = 32,
                          NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE = 80,
                          NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE = 80;
// A 64-bit value that the driver cannot determine, such as a process's memory under Windows.
inline constexpr unsigned long long NVML_VALUE_NOT_AVAILABLE = ~0ULL;
inline constexpr unsigned NVML_DEVICE_ARCH_VOLTA = 5, NVML_DEVICE_ARCH_TURING = 6,
                          NVML_DEVICE_ARCH_AMPERE = 7, NVML_DEVICE_ARCH_ADA = 8, NVML_DEVICE_ARCH_HOPPER = 9,
                          NVML_DEVICE_ARCH_BLACKWELL = 10, NVML_DEVICE_ARCH_UNKNOWN = 0xffffffff;
inline constexpr unsigned NVML_DEVICE_MIG_DISABLE = 0, NVML_DEVICE_MIG_ENABLE = 1, NVML_NVLINK_MAX_LINKS = 18,
                          NVML_BUS_TYPE_PCIE = 2;
inline constexpr unsigned long long nvmlEventTypeNone = 0, nvmlEventTypeSingleBitEccError = 1,
                                    nvmlEventTypeDoubleBitEccError = 2, nvmlEventTypePState = 4,
                                    nvmlEventTypeXidCriticalError = 8, nvmlEventTypeClock = 0x10,
                                    nvmlEventTypePowerSourceChange = 0x80, nvmlEventMigConfigChange = 0x100;
inline constexpr unsigned long long nvmlClocksEventReasonNone = 0, nvmlClocksEventReasonGpuIdle = 1,
                                    nvmlClocksEventReasonSwPowerCap = 4;

// The first word of a versioned structure: its size, and its revision in the top byte.
template <class Struct>
constexpr unsigned nvml_struct_version(unsigned revision) {
  return static_cast<unsigned>(sizeof(Struct)) | revision << 24;
}

struct nvmlSystemDriverBranchInfo_v1_t {
  unsigned int version;
  char branch[80];
};

using nvmlSystemDriverBranchInfo_t = nvmlSystemDriverBranchInfo_v1_t;
using nvmlDevice_t = struct nvmlDevice_st*;
using nvmlDeviceArchitecture_t = unsigned int;
struct nvmlDeviceAttributes_t {
  unsigned int multiprocessorCount;
  unsigned int sharedCopyEngineCount;
  unsigned int sharedDecoderCount;
  unsigned int sharedEncoderCount;
  unsigned int sharedJpegCount;
  unsigned int sharedOfaCount;
  unsigned int gpuInstanceSliceCount;
  unsigned int computeInstanceSliceCount;
  unsigned long long memorySizeMB;
};

using nvmlBusType_t = unsigned int;
struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  char busId[32];
};

struct nvmlPciInfoExt_v1_t {
  unsigned int version;
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  unsigned int baseClass;
  unsigned int subClass;
  char busId[32];
};

using nvmlPciInfoExt_t = nvmlPciInfoExt_v1_t;
struct nvmlAccountingStats_t {
  unsigned int gpuUtilization;
  unsigned int memoryUtilization;
  unsigned long long maxMemoryUsage;
  unsigned long long time;
  unsigned long long startTime;
  unsigned int isRunning;
  unsigned int reserved[5];
};
struct nvmlAccountingStats_v2_t {
  unsigned int pid;  // Set by the caller.
  unsigned int isRunning;
  unsigned int gpuUtilization;
  unsigned int memoryUtilization;
  unsigned long long maxMemoryUsage;
  unsigned int sampleCount;
  unsigned long long sumGpuUtil;
  unsigned long long sumFbUtil;
  unsigned long long time;
  unsigned long long startTime;
};

// Type 1 uses `str`, type 2 uses `bytes`.
struct nvmlUUID_v1_t {
  unsigned int version;
  unsigned int type;
  union {
    char str[41];
    unsigned char bytes[16];
  } value;
};

using nvmlUUID_t = nvmlUUID_v1_t;
struct nvmlBAR1Memory_t {
  unsigned long long bar1Total;
  unsigned long long bar1Free;
  unsigned long long bar1Used;
};

struct nvmlProcessInfo_v1_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;
};

struct nvmlProcessInfo_v2_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};

using nvmlProcessInfo_t = nvmlProcessInfo_v2_t;
struct nvmlMemory_t {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct nvmlMemory_v2_t {
  unsigned int version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};

struct nvmlProcessUtilizationSample_t {
  unsigned int pid;
  unsigned long long timeStamp;
  unsigned int smUtil;
  unsigned int memUtil;
  unsigned int encUtil;
  unsigned int decUtil;
};

struct nvmlProcessUtilizationInfo_v1_t {
  unsigned long long timeStamp;
  unsigned int pid;
  unsigned int smUtil;
  unsigned int memUtil;
  unsigned int encUtil;
  unsigned int decUtil;
  unsigned int jpgUtil;
  unsigned int ofaUtil;
};

struct nvmlProcessesUtilizationInfo_v1_t {
  unsigned int version;
  unsigned int processSamplesCount;
  unsigned long long lastSeenTimeStamp;
  nvmlProcessUtilizationInfo_v1_t* procUtilArray;
};

using nvmlProcessesUtilizationInfo_t = nvmlProcessesUtilizationInfo_v1_t;
struct nvmlProcessDetail_v1_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
  unsigned long long usedGpuCcProtectedMemory;
};

struct nvmlProcessDetailList_v1_t {
  unsigned int version;
  unsigned int mode;
  unsigned int numProcArrayEntries;
  nvmlProcessDetail_v1_t* procArray;
};

using nvmlProcessDetailList_t = nvmlProcessDetailList_v1_t;
struct nvmlFanSpeedInfo_v1_t {
  unsigned int version;
  unsigned int fan;
  unsigned int speed;
};

using nvmlFanSpeedInfo_t = nvmlFanSpeedInfo_v1_t;
union nvmlValue_t {
  double dVal;
  int siVal;
  unsigned int uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  signed long long sllVal;
  unsigned short usVal;
};

struct nvmlSample_t {
  unsigned long long timeStamp;
  nvmlValue_t sampleValue;
};

struct nvmlUtilization_t {
  unsigned int gpu;
  unsigned int memory;
};

struct nvmlViolationTime_t {
  unsigned long long referenceTime;
  unsigned long long violationTime;
};

struct nvmlEccErrorCounts_t {
  unsigned long long l1Cache;
  unsigned long long l2Cache;
  unsigned long long deviceMemory;
  unsigned long long registerFile;
};

struct nvmlRowRemapperHistogramValues_t {
  unsigned int max;
  unsigned int high;
  unsigned int partial;
  unsigned int low;
  unsigned int none;
};

using nvmlAffinityScope_t = unsigned int;
using nvmlVgpuInstance_t = unsigned int;
struct nvmlEncoderSessionInfo_t {
  unsigned int sessionId;
  unsigned int pid;
  nvmlVgpuInstance_t vgpuInstance;
  unsigned int codecType;
  unsigned int hResolution;
  unsigned int vResolution;
  unsigned int averageFps;
  unsigned int averageLatency;
};
struct nvmlFBCSessionInfo_t {
  unsigned int sessionId;
  unsigned int pid;
  nvmlVgpuInstance_t vgpuInstance;
  unsigned int displayOrdinal;
  unsigned int sessionType;
  unsigned int sessionFlags;
  unsigned int hMaxResolution;
  unsigned int vMaxResolution;
  unsigned int hResolution;
  unsigned int vResolution;
  unsigned int averageFPS;
  unsigned int averageLatency;
};
using nvmlGpuInstance_t = struct nvmlGpuInstance_st*;
using nvmlVgpuTypeId_t = unsigned int;
using nvmlEventSet_t = struct nvmlEventSet_st*;
struct nvmlEventData_t {
  nvmlDevice_t device;
  unsigned long long eventType;
  unsigned long long eventData;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};

struct nvmlFieldValue_t {
  unsigned int fieldId;
  unsigned int scopeId;
  long long timestamp;
  long long latencyUsec;
  nvmlValueType_t valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
};

extern "C" {

// Initialisation and shutdown, versions.
const char* nvmlErrorString(nvmlReturn_t result);
nvmlReturn_t nvmlInit();
nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
nvmlReturn_t nvmlInit_v2();
nvmlReturn_t nvmlShutdown();
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* cuda_driver_version);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* cuda_driver_version);
nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t* branch_info, unsigned int length);
nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length);
nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned int length);
nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char* name, unsigned int length);
nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu_number, unsigned int* count,
                                         nvmlDevice_t* device_array);

// Finding devices.
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t* arch);
nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t* attributes);
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t* attributes);
nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int* board_id);
nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char* part_number, unsigned int length);
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t* type);
nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, nvmlBusType_t* type);
nvmlReturn_t nvmlDeviceGetCount(unsigned int* device_count);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* device_count);
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor);
nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int* is_enabled,
                                          unsigned int* default_mode);
nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char* version);
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* pci_bus_id, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* pci_bus_id, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t* uuid, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index);
nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char* version, unsigned int length);
nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, nvmlInforomObject_t object, char* version,
                                         unsigned int length);
nvmlReturn_t nvmlDeviceGetIrqNum(nvmlDevice_t device, unsigned int* irq_num);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int* minor_number);
nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t device, unsigned int* module_id);
nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int* multi_gpu_bool);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length);
nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int* num_cores);
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int* node);
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* pci);
nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t* pci);
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* pci);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci);
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char* serial, unsigned int length);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length);
// Exported, but in no header from NVIDIA (nvml_tables.h).
nvmlReturn_t nvmlInternalGetExportTable(const void** table, const void* id);
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char* version, unsigned int length);
nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device1, nvmlDevice_t device2, int* on_same_board);

// Memory and processes.
nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t device);
nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int* buffer_size);
nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t* mode);
nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int* count, unsigned int* pids);
nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                          nvmlAccountingStats_t* stats);
nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, nvmlAccountingStats_v2_t* stats);
nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int* count,
                                          nvmlEncoderSessionInfo_t* infos);
nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned int* count, nvmlFBCSessionInfo_t* infos);
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t* bar1_memory);
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t* mode);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* info_count,
                                                  nvmlProcessInfo_v1_t* infos);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* info_count,
                                                     nvmlProcessInfo_v2_t* infos);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* info_count,
                                                     nvmlProcessInfo_t* infos);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int* info_count,
                                                   nvmlProcessInfo_v1_t* infos);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int* info_count,
                                                      nvmlProcessInfo_v2_t* infos);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int* info_count,
                                                      nvmlProcessInfo_t* infos);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned int* info_count,
                                                     nvmlProcessInfo_v1_t* infos);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* info_count,
                                                        nvmlProcessInfo_v2_t* infos);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* info_count,
                                                        nvmlProcessInfo_t* infos);
nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int* bus_width);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory);
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t* utilization,
                                             unsigned int* process_samples_count,
                                             unsigned long long last_seen_time_stamp);
nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_t* proceses_util_info);
nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t* plist);
nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t device, nvmlEnableState_t mode);
nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode);

// Utilisation, clocks, temperature, power.
nvmlReturn_t nvmlDeviceGetAdaptiveClockInfoStatus(nvmlDevice_t device, unsigned int* adaptive_clock_status);
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t clock_type,
                                            unsigned int* clock_m_hz);
nvmlReturn_t nvmlDeviceGetAutoBoostedClocksEnabled(nvmlDevice_t device, nvmlEnableState_t* is_enabled,
                                                   nvmlEnableState_t* default_is_enabled);
nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t clock_type, nvmlClockId_t clock_id,
                                unsigned int* clock_m_hz);
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* clock);
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long* clocks_event_reasons);
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long* clocks_throttle_reasons);
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int* utilization,
                                             unsigned int* sampling_period_us);
nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t clock_type,
                                                   unsigned int* clock_m_hz);
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t* is_active);
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, nvmlEnableState_t* display);
nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int* utilization,
                                             unsigned int* sampling_period_us);
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int* limit);
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int* speed);
nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t device, nvmlFanSpeedInfo_t* fan_speed);
nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int* speed);
nvmlReturn_t nvmlDeviceGetGpuOperationMode(nvmlDevice_t device, nvmlGpuOperationMode_t* current,
                                           nvmlGpuOperationMode_t* pending);
nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned int* utilization,
                                         unsigned int* sampling_period_us);
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* clock);
nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t clock_type,
                                                unsigned int* clock_m_hz);
nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int* num_fans);
nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned int* utilization,
                                         unsigned int* sampling_period_us);
nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t* p_state);
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t* mode);
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int* default_limit);
nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int* limit);
nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int* min_limit,
                                                          unsigned int* max_limit);
nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, nvmlEnableState_t* mode);
nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t* p_state);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* power);
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
                                  unsigned long long last_seen_time_stamp, nvmlValueType_t* sample_val_type,
                                  unsigned int* sample_count, nvmlSample_t* samples);
nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device,
                                                      unsigned long long* supported_clocks_event_reasons);
nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(
    nvmlDevice_t device, unsigned long long* supported_clocks_throttle_reasons);
nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_clock_m_hz,
                                                  unsigned int* count, unsigned int* clocks_m_hz);
nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int* count,
                                                unsigned int* clocks_m_hz);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor_type,
                                      unsigned int* temp);
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device,
                                               nvmlTemperatureThresholds_t threshold_type,
                                               unsigned int* temp);
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* energy);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization);
nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t perf_policy_type,
                                          nvmlViolationTime_t* viol_time);
nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_t device, unsigned int mem_clock_m_hz,
                                             unsigned int graphics_clock_m_hz);
nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int min_gpu_clock_m_hz,
                                          unsigned int max_gpu_clock_m_hz);
nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t device, unsigned int min_mem_clock_m_hz,
                                             unsigned int max_mem_clock_m_hz);
nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode);
nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int limit);

// Errors and health.
nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t* default_mode);
nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t error_type,
                                            nvmlEccCounterType_t counter_type,
                                            nvmlEccErrorCounts_t* ecc_counts);
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t* current,
                                  nvmlEnableState_t* pending);
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t error_type,
                                             nvmlEccCounterType_t counter_type,
                                             nvmlMemoryLocation_t location_type, unsigned long long* count);
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned int* value);
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int* corr_rows, unsigned int* unc_rows,
                                       unsigned int* is_pending, unsigned int* failure_occurred);
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                       unsigned int* page_count, unsigned long long* addresses);
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t* is_pending);
nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                          unsigned int* page_count, unsigned long long* addresses,
                                          unsigned long long* timestamps);
nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t* values);
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t error_type,
                                         nvmlEccCounterType_t counter_type, unsigned long long* ecc_counts);

// Topology and links.
nvmlReturn_t nvmlDeviceClearCpuAffinity(nvmlDevice_t device);
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int cpu_set_size, unsigned long* cpu_set);
nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int cpu_set_size,
                                                 unsigned long* cpu_set, nvmlAffinityScope_t scope);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int* curr_link_gen);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int* curr_link_width);
nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int* max_link_gen_device);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int* max_link_gen);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int* max_link_width);
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int node_set_size,
                                         unsigned long* node_set, nvmlAffinityScope_t scope);
nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
                                           nvmlNvLinkCapability_t capability, unsigned int* cap_result);
nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link,
                                             nvmlNvLinkErrorCounter_t counter,
                                             unsigned long long* counter_value);
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                 nvmlIntNvLinkDeviceType_t* p_nv_link_device_type);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t* pci);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t* pci);
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t* is_active);
nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int* version);
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2,
                                    nvmlGpuP2PCapsIndex_t p2p_index, nvmlGpuP2PStatus_t* p2p_status);
nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, unsigned int* max_speed);
nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int* pcie_speed);
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                         unsigned int* value);
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2,
                                                 nvmlGpuTopologyLevel_t* path_info);
nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                              unsigned int* count, nvmlDevice_t* device_array);
nvmlReturn_t nvmlDeviceSetCpuAffinity(nvmlDevice_t device);

// Partitions and virtual devices.
nvmlReturn_t nvmlDeviceGetActiveVgpus(nvmlDevice_t device, unsigned int* vgpu_count,
                                      nvmlVgpuInstance_t* vgpu_instances);
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int* id);
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig_device, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int* id);
nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profile_id,
                                       nvmlGpuInstance_t* gpu_instances, unsigned int* count);
nvmlReturn_t nvmlDeviceGetHostVgpuMode(nvmlDevice_t device, nvmlHostVgpuMode_t* p_host_vgpu_mode);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* count);
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t* mig_device);
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current_mode,
                                  unsigned int* pending_mode);
nvmlReturn_t nvmlDeviceGetSupportedVgpus(nvmlDevice_t device, unsigned int* vgpu_count,
                                         nvmlVgpuTypeId_t* vgpu_type_ids);
nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device,
                                             nvmlGpuVirtualizationMode_t* p_virtual_mode);
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int* is_mig_device);
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t* activation_status);

// Events.
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long* event_types);
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long event_types,
                                      nvmlEventSet_t set);
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set);
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set);
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t* data, unsigned int timeoutms);
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* data, unsigned int timeoutms);

// Field values.
nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t device, int values_count, nvmlFieldValue_t* values);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int values_count, nvmlFieldValue_t* values);

}  // extern "C"
