// What a container asks of GPUs, in the resources of ACK, of VKE or of NVIDIA's device plugin:
//
//   | limit, label or annotation                          | becomes |
//   |-----------------------------------------------------|-------------------------------------------------------|
//   | aliyun.com/gpu-mem n                                | n units of the node, over all devices | |
//   aliyun.com/gpu-core.percentage, 5 to 100 in steps of 5 | share, isolation memory+compute | | label
//   aliyun.com/gpu-count                          | devices; each gives an equal part of the memory       |
//   | vke.volcengine.com/mgpu-core 1 to 100, mgpu-memory MiB | share, memory, isolation memory+compute | |
//   ... mgpu-core 100, 200, ... alone                   | whole devices | | annotation
//   vke.volcengine.com/container-multiple-gpu | devices; each gives an equal part of both            | |
//   annotation vke.volcengine.com/mgpu-compute-policy   | policy | | nvidia.com/gpu | whole devices |
#pragma once

#include <optional>
#include <string>

#include "fronts/json_reader.h"
#include "wire/objects/service_object.h"

namespace carve::fronts {

// The parts of a manifest that say what its first container asks for.
struct PodParts {
  JsonMember limits;
  JsonMember requests;
  JsonMember labels;       // Of the pod.
  JsonMember annotations;  // Of the pod.
  std::string container;   // Name.
};

struct GpuResources {
  std::optional<objects::Gpu> gpu;
  std::string dialect = "kubernetes";  // "ack", "vke".
};

// Returns what the container asks for; errors are added to the list of the reader.
GpuResources read_gpu_resources(JsonReader&, ErrorList&, const PodParts&);

}  // namespace carve::fronts
