// Objects of a cluster for tests, as the API server would have them.
#pragma once

#include <string>
#include <vector>

#include "kube/answers.h"
#include "wire/kube/node_devices.h"
#include "wire/kube/pod_request.h"
#include "wire/kube/pod_slices.h"

namespace carve::cluster::testing {

// The device's UUID is made of both numbers.
inline Uuid device_uuid(unsigned node, unsigned device) {
  Uuid out;
  out.bytes[12] = static_cast<uint8_t>(node >> 8);
  out.bytes[13] = static_cast<uint8_t>(node);
  out.bytes[15] = static_cast<uint8_t>(device + 1);
  return out;
}

inline kube::NodeDevices a10_devices(unsigned node, unsigned devices, Bytes usable = 22731_MiB) {
  kube::NodeDevices out{.boot = "b", .cpu = 64'000, .memory = 256ull << 30, .enforcement = "library"};
  for (unsigned i = 0; i < devices; ++i)
    out.devices.push_back({.i = i,
                           .uuid = device_uuid(node, i),
                           .model = "NVIDIA A10",
                           .usable = usable.count,
                           .context = (256_MiB).count,
                           .migrates = true});
  return out;
}

inline kube::ObjectMeta node_object(const std::string& name, const kube::NodeDevices& devices) {
  kube::ObjectMeta out;
  out.name = name;
  out.uid = "uid-of-" + name;
  out.annotations[kube::devices_annotation] = api::write(devices);
  return out;
}

inline kube::ObjectMeta pod_object(const std::string& name, const kube::PodRequest& request) {
  kube::ObjectMeta out;
  out.name_space = "a";
  out.name = name;
  out.uid = "uid-of-" + name;
  out.annotations[kube::request_annotation] = api::write(request);
  return out;
}

// A pod of one container that asks for memory, with a share of compute if it is not 0.
inline kube::ObjectMeta pod_object(const std::string& name, Bytes memory, uint32_t share_bp = 0,
                                   uint32_t devices = 1) {
  kube::PodRequest request{.dialect = "carve"};
  request.containers["c"] = {.memory = memory.count, .devices = devices};
  if (share_bp != 0) request.containers["c"].share_bp = share_bp;
  return pod_object(name, request);
}

inline kube::ObjectMeta bound(kube::ObjectMeta pod, const kube::PodSlices& slices) {
  pod.annotations[kube::slices_annotation] = api::write(slices);
  return pod;
}

}  // namespace carve::cluster::testing
