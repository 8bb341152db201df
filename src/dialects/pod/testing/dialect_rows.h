// Every rule of every dialect as a row: the limits and metadata of a pod with one container named c, and the
// result or the message of the rejection. The memory unit is unknown.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tuple>
#include <vector>

#include "dialects/pod/dialect.h"

namespace carve::dialects::testing {

inline std::string summary(const Amounts& r) {
  std::string out = fmt::format("{} x", r.devices);
  if (!r.parts.empty()) out = fmt::format("parts {}", text(r.parts));
  if (r.exclusive) out += " whole";
  if (r.memory_bytes) out += fmt::format(" {}MiB", *r.memory_bytes >> 20);
  if (r.memory_units) out += fmt::format(" {} units", *r.memory_units);
  if (r.memory_bp) out += fmt::format(" {} of it", text(Share{*r.memory_bp}));
  if (r.share_bp) out += fmt::format(" {}", text(Share{*r.share_bp}));
  if (r.isolation) out += fmt::format(" {}", text(*r.isolation));
  if (r.policy) out += fmt::format(" {}", text(*r.policy));
  if (r.latency_class) out += fmt::format(" {}", text(*r.latency_class));
  if (r.strategy) out += fmt::format(" {}", text(*r.strategy));
  if (!r.models.empty()) out += fmt::format(" models={}", fmt::join(r.models, ","));
  if (!r.device_uuids.empty()) out += fmt::format(" uuids={}", fmt::join(r.device_uuids, ","));
  if (r.spill_bytes != 0) out += fmt::format(" spill={}MiB", r.spill_bytes >> 20);
  return out;
}

struct DialectExample {
  std::string limits;    // As YAML in braces.
  std::string metadata;  // Also as YAML in braces.
  std::string result;    // A summary, or the start of the message.
};

inline std::vector<DialectExample> accepted() {
  const std::string v = "vke.volcengine.com/", c = "carve.dev/", n = "nvidia.com/";
  const std::string three = "annotations: {" + v + "container-multiple-gpu: '3'}";
  const auto annotated = [](const std::string& text) { return "annotations: {" + text + "}"; };
  return {
      {n + "gpu: 2", "", "2 x whole"},
      {n + "gpu: '1'", "", "1 x whole"},

      {c + "memory: 4Gi", "", "1 x 4096MiB"},
      {c + "memory: 4Gi, " + c + "compute: 30", "", "1 x 4096MiB 30% memory+compute"},
      {c + "memory: 12Gi, " + c + "devices: 3, " + c + "compute: '30'", "", "3 x 4096MiB 10% memory+compute"},
      {c + "memory: 1048576", "", "1 x 1MiB"},
      {c + "devices: 2", "", "2 x whole"},
      {c + "memory: 4Gi", annotated(c + "policy: fixed-share"), "1 x 4096MiB fixed-share"},
      {c + "memory: 4Gi", annotated(c + "isolation: none, " + c + "latency-class: latency"),
       "1 x 4096MiB none latency"},
      {c + "memory: 4Gi", annotated(c + "strategy: spread, " + c + "spill: 1Gi"),
       "1 x 4096MiB spread spill=1024MiB"},
      {c + "memory: 4Gi", annotated(c + "models: 'NVIDIA A10,NVIDIA L4', " + c + "device-uuids: GPU-1"),
       "1 x 4096MiB models=NVIDIA A10,NVIDIA L4 uuids=GPU-1"},

      {c + "devices: 2", annotated(c + "parts: '8Gi:30%,4GiB:10%'"),
       "parts 8GiB:30%,4GiB:10% memory+compute"},
      {c + "devices: 3", annotated(c + "parts: '50%,4096Mi,2 units', " + c + "policy: fixed-share"),
       "parts 50%,4GiB,2 units fixed-share"},

      {"aliyun.com/gpu-mem: 16", "", "1 x 16 units"},
      {"aliyun.com/gpu-mem: 2k", "", "1 x 2000 units"},
      {"aliyun.com/gpu-mem: 16", "labels: {aliyun.com/gpu-count: '4'}", "4 x 4 units"},
      {"aliyun.com/gpu-mem: 16, aliyun.com/gpu-core.percentage: 30", "", "1 x 16 units 30% memory+compute"},
      {"aliyun.com/gpu-mem: 16", annotated(c + "latency-class: batch"), "1 x 16 units batch"},

      {v + "mgpu-core: 30, " + v + "mgpu-memory: 257", "", "1 x 257MiB 30% memory+compute"},
      {v + "mgpu-core: 100, " + v + "mgpu-memory: 4096", "", "1 x 4096MiB 100% memory+compute"},
      {v + "mgpu-core: 30, " + v + "mgpu-memory: 4k", "", "1 x 4000MiB 30% memory+compute"},
      {v + "mgpu-core: 30, " + v + "mgpu-memory: 3072", three, "3 x 1024MiB 10% memory+compute"},
      {v + "mgpu-core: 30, " + v + "mgpu-memory: 4096",
       annotated(v + "mgpu-compute-policy: native-burst-share"),
       "1 x 4096MiB 30% memory+compute native-burst-share"},
      {v + "mgpu-core: 200", "", "2 x whole"},

      {n + "gpumem: 3000", "", "1 x 3000MiB"},
      {n + "gpumem: 3k", "", "1 x 3000MiB"},
      {n + "gpumem: '3000.0'", "", "1 x 3000MiB"},
      {n + "gpumem: 3e3", "", "1 x 3000MiB"},
      {n + "gpu: 2, " + n + "gpumem: 3000, " + n + "gpucores: 30", "", "2 x 3000MiB 30%"},
      {n + "gpumem-percentage: 50, " + n + "gpucores: 0", "", "1 x 50% of it"},
      {n + "gpu: 1, " + n + "gpucores: 50, " + n + "priority: 0", "", "1 x 100% of it 50% latency"},
      {n + "gpumem: 3000, " + n + "priority: 1", "", "1 x 3000MiB batch"},
      {n + "gpumem: 3000",
       annotated("hami.io/gpu-scheduler-policy: spread, " + n + "use-gpuuuid: 'GPU-1,GPU-2'"),
       "1 x 3000MiB spread uuids=GPU-1,GPU-2"},
  };
}

inline std::vector<DialectExample> refused() {
  const std::string v = "vke.volcengine.com/", c = "carve.dev/", n = "nvidia.com/";
  const std::string both = v + "mgpu-core: 30, " + v + "mgpu-memory: ";
  const auto cards = [&](const char* number) {
    return "annotations: {" + v + "container-multiple-gpu: '" + number + "'}";
  };
  const auto annotated = [](const std::string& text) { return "annotations: {" + text + "}"; };
  return {
      {c + "memory: 4096", "", "container c: carve.dev/memory: 4096 is 4096 bytes; write 4Gi or 4096Mi"},
      {c + "memory: 4", "", "container c: carve.dev/memory: 4 is 4 bytes; write 4Gi or 4Mi"},
      {c + "memory: 1500k", "", "container c: carve.dev/memory: 1500k is not in whole MiB; write 2Mi"},
      {c + "memory: 0", "", "container c: carve.dev/memory: 0 is not an amount of memory; write 4Gi"},
      {c + "memory: -1", "", "container c: carve.dev/memory: -1 is not an amount of memory"},
      {c + "memory: 1e1000Gi", "", "container c: carve.dev/memory: 1e1000Gi is not an amount of memory"},
      {c + "memory: 10Gi, " + c + "devices: 3", "",
       "container c: carve.dev/memory: 10Gi does not divide equally over 3 devices; request a multiple of "
       "3Mi"},
      {c + "memory: 4Gi, " + c + "compute: 130", "",
       "container c: carve.dev/compute: 130 on 1 device; must be 1 to 100 for each device"},
      {c + "memory: 4Gi, " + c + "compute: 1, " + c + "devices: 2", "",
       "container c: carve.dev/compute: 1 on 2 devices; must be 1 to 100 for each device"},
      {c + "memory: 21Gi, " + c + "compute: 100, " + c + "devices: 7", "",
       "container c: carve.dev/compute: 100 on 7 devices; the share of each device is not a multiple of 0.01 "
       "%"},
      {c + "compute: 30", "",
       "container c: carve.dev/compute needs carve.dev/memory; without it, carve.dev/devices requests whole "
       "devices"},
      {c + "devices: 0", "", "container c: carve.dev/devices: 0; must be 1 to 16"},
      {c + "memroy: 4Gi", "",
       "container c: carve.dev/memroy: unknown limit; use one of carve.dev/memory, carve.dev/compute, "
       "carve.dev/devices"},
      {c + "slot: 2", "",
       "container c: carve.dev/slot is set by Carve; request carve.dev/memory or carve.dev/devices instead"},
      {"aliyun.com/gpu-mem: 2, " + c + "computed: 30", "",
       "container c: carve.dev/computed: unknown limit; use one of"},
      {c + "memory: 4Gi", annotated(c + "polcy: x"),
       "carve.dev/polcy: unknown annotation; use one of carve.dev/policy, carve.dev/isolation"},
      {c + "memory: 4Gi", "labels: {" + c + "policy: native-burst-share}",
       "carve.dev/policy: a label of this name has no effect; write it as an annotation"},
      {c + "memory: 4Gi", annotated(c + "policy: burst"),
       "carve.dev/policy: burst; must be fixed-share, guaranteed-burst-share or native-burst-share"},
      {c + "devices: 2", annotated(c + "parts: '8Gi:30%,4Gi:x'"),
       "carve.dev/parts: part 2 '4Gi:x': share 'x' is not a share; try 30%"},
      {c + "devices: 2", annotated(c + "parts: '8Gi:30%,4:10%'"),
       "carve.dev/parts: part 2 '4:10%': memory '4' has no unit"},
      {c + "devices: 2", annotated(c + "parts: '8Gi:30%,1Ki:10%'"),
       "carve.dev/parts: part 2 '1Ki:10%': memory '1Ki' is not an amount of memory in whole MiB"},
      {c + "devices: 2", annotated(c + "parts: '8Gi:30%,4Gi'"),
       "carve.dev/parts: request a compute share on each device or on none"},
      {c + "devices: 3", annotated(c + "parts: '8Gi:30%,4Gi:10%'"),
       "container c: carve.dev/parts: 2 parts, but carve.dev/devices is 3; the two must be equal"},
      {c + "memory: 4Gi, " + c + "devices: 2", annotated(c + "parts: '8Gi:30%,4Gi:10%'"),
       "carve.dev/parts: sets the memory and share of each device in carve.dev/devices; leave out other "
       "amounts"},
      {n + "gpu: 2, " + n + "gpumem: 4096", annotated(c + "parts: '8Gi,4Gi'"),
       "carve.dev/parts: sets the memory and share of each device in carve.dev/devices; leave out other "
       "amounts"},
      {"aliyun.com/gpu-mem: 16", annotated(c + "parts: '8Gi,4Gi'"),
       "carve.dev/parts: sets the memory and share of each device in carve.dev/devices; leave out other "
       "amounts"},
      {c + "memory: 4Gi", annotated(c + "strategy: fgd"),
       "carve.dev/strategy: fgd; must be binpack or spread"},
      {c + "memory: 4Gi", annotated(c + "spill: '5'"), "carve.dev/spill: 5 is not an amount of memory"},
      {both + "4096", annotated(v + "mgpu-compute-policy: fixed-share, " + c + "policy: native-burst-share"),
       "carve.dev/policy: native-burst-share contradicts fixed-share, which the pod also requests; keep one"},

      {"aliyun.com/gpu-mem: 0", "", "aliyun.com/gpu-mem: 0; must be a whole number of units, at least 1"},
      {"aliyun.com/gpu-mem: 1.5", "", "aliyun.com/gpu-mem: 1.5; must be a whole number of units, at least 1"},
      {"aliyun.com/gpu-mem: 4Gi", "",
       "aliyun.com/gpu-mem: 4Gi has the suffix Gi, but must be a number of the node's units, 1 GiB or 128 "
       "MiB; write the number without Gi"},
      {"aliyun.com/gpu-mem: 512Ki", "",
       "aliyun.com/gpu-mem: 512Ki has the suffix Ki, but must be a number of"},
      {"aliyun.com/gpu-core.percentage: 30", "", "aliyun.com/gpu-core.percentage needs aliyun.com/gpu-mem"},
      {"aliyun.com/gpu-mem: 1, aliyun.com/gpu-core.percentage: 7", "",
       "aliyun.com/gpu-core.percentage: 7; must be 5 to 100 in steps of 5"},
      {"aliyun.com/gpu-mem: 16", "labels: {aliyun.com/gpu-count: '3'}",
       "aliyun.com/gpu-count: 3 does not divide 16 units equally"},
      {"aliyun.com/gpu-mem: 16", "labels: {aliyun.com/gpu-count: '0'}",
       "aliyun.com/gpu-count: '0' is not a whole number from 1 to 16"},
      {"aliyun.com/gpu-mem: 16, aliyun.com/gpu-core.percentage: 30", "labels: {aliyun.com/gpu-count: '2'}",
       "with aliyun.com/gpu-count, only memory is shared; leave out aliyun.com/gpu-core.percentage"},
      {"aliyun.com/gpu-mem: 16", "labels: {alibabacloud.com/eci: 'true'}",
       "elastic containers (VCI) do not support mGPU: only node (ECS) deployments do"},

      {both + "256", "", "mgpu-memory: 256 MiB is too little; single-card sharing needs more than 256 MiB"},
      {both + "1024", cards("2"),
       "mgpu-memory: 1024 MiB over 2 cards is too little; multi-card sharing needs more than 1024 MiB"},
      {both + "1026", cards("4"), "mgpu-memory: 1026 MiB does not divide equally over 4 cards"},
      {both + "1600", cards("8"),
       "mgpu-memory: 1600 MiB over 8 cards is too little; each needs at least 256 MiB"},
      {both + "4200", cards("7"), "mgpu-core: 30 divided over 7 cards is not a multiple of 0.01 %"},
      {both + "4096", cards("9"), "container-multiple-gpu: '9' may contain only numbers from 1 to 8"},
      {both + "4096", cards("2,1"),
       "container-multiple-gpu: 2 numbers for 1 container; write one for each container"},
      {both + "4096", annotated(v + "mgpu-compute-policy: burst"),
       "mgpu-compute-policy: burst; must be fixed-share, guaranteed-burst-share or native-burst-share"},
      {both + "4096", annotated(v + "burst-to-vci: enforce"),
       "elastic containers (VCI) do not support mGPU: only node (ECS) deployments do"},
      {v + "mgpu-memory: 4096", "", "mgpu-memory needs mgpu-core"},
      {v + "mgpu-core: 30", "", "mgpu-core needs mgpu-memory"},
      {v + "mgpu-core: 150", "", "mgpu-core: 150; must be 1 to 100, or a multiple of 100 for whole cards"},
      {v + "mgpu-core: 150, " + v + "mgpu-memory: 4096", "",
       "mgpu-core: 150; must be 1 to 100, or a multiple of 100 for whole cards"},

      {n + "gpumem: 1, " + n + "gpumem-percentage: 5", "",
       "nvidia.com/gpumem and nvidia.com/gpumem-percentage are mutually exclusive"},
      {n + "gpumem: 512Mi", "",
       "nvidia.com/gpumem: 512Mi has the suffix Mi, but must be a number of MiB; write 512"},
      {n + "gpu: 1, " + n + "gpumem: 4Gi", "",
       "nvidia.com/gpumem: 4Gi has the suffix Gi, but must be a number of MiB; write 4096"},
      {n + "gpumem: '8M'", "",
       "nvidia.com/gpumem: 8M has the suffix M, but must be a number of MiB; write the number without M"},
      {n + "gpumem: 1, " + n + "gpucores: 30Mi", "",
       "nvidia.com/gpucores: 30Mi has the suffix Mi, but must be a"},
      {n + "gpumem: 1, " + n + "gpu: 1Gi", "",
       "nvidia.com/gpu: 1Gi has the suffix Gi, but must be a number; write"},
      {both + "4096Mi", "", "mgpu-memory: 4096Mi has the suffix Mi, but must be a number of MiB; write 4096"},
      {n + "gpumem: 1, " + n + "gpucores: 120", "", "nvidia.com/gpucores: 120; must be 0 to 100"},
      {n + "gpumem-percentage: 101", "", "nvidia.com/gpumem-percentage: 101; must be 1 to 100"},
      {n + "gpumem: 1, " + n + "priority: 2", "", "nvidia.com/priority: 2; must be 0 to 1"},
      {n + "gpumem: 1", annotated("hami.io/gpu-scheduler-policy: x"),
       "hami.io/gpu-scheduler-policy: 'x'; must be binpack or spread"},
      {n + "gpu: 17", "", "nvidia.com/gpu: 17; must be 1 to 16"},

      {n + "gpu: 1, aliyun.com/gpu-mem: 4", "",
       "container c mixes aliyun.com/gpu-mem and nvidia.com/gpu; keep one"},
      {"aliyun.com/gpu-mem: 4, " + both + "4096", "",
       "container c mixes aliyun.com/gpu-mem and vke.volcengine.com/mgpu-memory; keep one"},
      {c + "memory: 4Gi, aliyun.com/gpu-mem: 4", "",
       "container c mixes carve.dev/memory and aliyun.com/gpu-mem; keep one"},
  };
}

}  // namespace carve::dialects::testing
