// Objects of a cluster for tests, as the API server would return them.
#pragma once

#include <string>
#include <vector>

#include "kubernetes/api/answers.h"
#include "kubernetes/format/node_devices.h"
#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::kubernetes::coordinator::testing {

// Builds the device's UUID from both numbers.
inline Uuid device_uuid(unsigned node, unsigned device) {
  Uuid out;
  out.bytes[12] = static_cast<uint8_t>(node >> 8);
  out.bytes[13] = static_cast<uint8_t>(node);
  out.bytes[15] = static_cast<uint8_t>(device + 1);
  return out;
}

inline kubernetes::NodeDevices a10_devices(unsigned node, unsigned devices, Bytes usable = 22731_MiB) {
  kubernetes::NodeDevices out{.boot = "b", .cpu = 64'000, .memory = 256ull << 30, .enforcement = "library"};
  for (unsigned i = 0; i < devices; ++i)
    out.devices.push_back({.i = i,
                           .uuid = device_uuid(node, i),
                           .model = "NVIDIA A10",
                           .usable = usable.count,
                           .context = (256_MiB).count,
                           .migrates = true});
  return out;
}

inline kubernetes::ObjectMeta node_object(const std::string& name, const kubernetes::NodeDevices& devices) {
  kubernetes::ObjectMeta out;
  out.name = name;
  out.uid = "uid-of-" + name;
  out.annotations[kubernetes::devices_annotation] = api::write(devices);
  return out;
}

inline kubernetes::ObjectMeta pod_object(const std::string& name, const kubernetes::PodRequest& request) {
  kubernetes::ObjectMeta out;
  out.name_space = "a";
  out.name = name;
  out.uid = "uid-of-" + name;
  out.annotations[kubernetes::request_annotation] = api::write(request);
  return out;
}

// A pod with one container that requests memory and, unless it is 0, a share of compute.
inline kubernetes::ObjectMeta pod_object(const std::string& name, Bytes memory, uint32_t share_bp = 0,
                                         uint32_t devices = 1) {
  kubernetes::PodRequest request{.dialect = "carve"};
  Amounts& amounts = request.containers["c"].amounts;
  amounts = {.memory_bytes = memory.count, .devices = devices};
  if (share_bp != 0) amounts.share_bp = share_bp;
  return pod_object(name, request);
}

inline kubernetes::ObjectMeta bound(kubernetes::ObjectMeta pod, const kubernetes::PodSlices& slices) {
  pod.annotations[kubernetes::slices_annotation] = api::write(slices);
  return pod;
}

}  // namespace carve::kubernetes::coordinator::testing
