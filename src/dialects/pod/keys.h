// The keys with which pods request slices: limits, labels and annotations. Sources: Alibaba Cloud's documents
// on GPU sharing in ACK, Volcengine's on mGPU in VKE, the README of HAMi.
#pragma once

namespace carve::dialects::keys {

// Carve's keys. Amounts in limits are totals of the container.
inline constexpr const char* prefix = "carve.dev/";
inline constexpr const char* memory = "carve.dev/memory";
inline constexpr const char* compute = "carve.dev/compute";
inline constexpr const char* devices = "carve.dev/devices";
// Added by the admission: the device that kubelet's plugin gives to a container with a slice.
inline constexpr const char* slot = "carve.dev/slot";
inline constexpr const char* taint = "carve.dev/gpu";  // On nodes; pods with slices tolerate it.
inline constexpr const char* policy = "carve.dev/policy";
inline constexpr const char* isolation = "carve.dev/isolation";
inline constexpr const char* latency_class = "carve.dev/latency-class";
inline constexpr const char* strategy = "carve.dev/strategy";
inline constexpr const char* models = "carve.dev/models";
inline constexpr const char* device_uuids = "carve.dev/device-uuids";
inline constexpr const char* spill = "carve.dev/spill";
inline constexpr const char* parts = "carve.dev/parts";

inline constexpr const char* ack_memory = "aliyun.com/gpu-mem";
inline constexpr const char* ack_core = "aliyun.com/gpu-core.percentage";
inline constexpr const char* ack_count = "aliyun.com/gpu-count";
inline constexpr const char* ack_elastic = "alibabacloud.com/eci";

inline constexpr const char* vke_memory = "vke.volcengine.com/mgpu-memory";
inline constexpr const char* vke_core = "vke.volcengine.com/mgpu-core";
inline constexpr const char* vke_count = "vke.volcengine.com/container-multiple-gpu";
inline constexpr const char* vke_policy = "vke.volcengine.com/mgpu-compute-policy";
inline constexpr const char* vke_elastic = "vke.volcengine.com/burst-to-vci";

// Without other keys, this is the resource of NVIDIA's device plugin.
inline constexpr const char* nvidia_gpu = "nvidia.com/gpu";
inline constexpr const char* hami_memory = "nvidia.com/gpumem";
inline constexpr const char* hami_part = "nvidia.com/gpumem-percentage";
inline constexpr const char* hami_cores = "nvidia.com/gpucores";
inline constexpr const char* hami_priority = "nvidia.com/priority";
inline constexpr const char* hami_use_type = "nvidia.com/use-gputype";
inline constexpr const char* hami_no_type = "nvidia.com/nouse-gputype";
inline constexpr const char* hami_use_uuid = "nvidia.com/use-gpuuuid";
inline constexpr const char* hami_no_uuid = "nvidia.com/nouse-gpuuuid";
inline constexpr const char* hami_mode = "nvidia.com/vgpu-mode";
inline constexpr const char* hami_strategy = "hami.io/gpu-scheduler-policy";

}  // namespace carve::dialects::keys
