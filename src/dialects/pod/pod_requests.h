// The requests of a pod: the slice of each of its containers, read from its limits, labels and annotations in
// any dialect.
//
//   | dialect | limits                                            | becomes                            |
//   |---------|---------------------------------------------------|------------------------------------|
//   | carve   | carve.dev/memory 4Gi, compute 30, devices 2       | equal parts of both on each device |
//   | ack     | aliyun.com/gpu-mem 16, gpu-core.percentage 30     | units of the node; share           |
//   | vke     | vke.volcengine.com/mgpu-memory 4096, mgpu-core 30 | MiB and share; only mgpu-core 200: |
//   |         |                                                   | two whole devices                  |
//   | hami    | nvidia.com/gpumem 4096, gpucores 30, gpu 2        | MiB and share on each device       |
//   | nvidia  | nvidia.com/gpu 2                                  | whole devices                      |
#pragma once

#include <map>
#include <optional>

#include "dialects/pod/container_reader.h"

namespace carve::dialects {

struct PodRequests {
  std::optional<Dialect> dialect;        // Absent if no container requests a slice.
  std::map<size_t, Amounts> containers;  // By index; only containers that request a slice.
};

// Adds the container's request. Errors are added to the reader's list. All containers of a pod must use the
// same dialect.
void read_container_request(ContainerReader&, PodRequests&);

}  // namespace carve::dialects
