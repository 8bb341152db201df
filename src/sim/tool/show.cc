// carve-sim show DIR [-o json]: prints the devices of a set, their memory, contexts and processes, from the
// model.
#include <cstdio>
#include <iostream>

#include "sim/model/device_engine.h"
#include "sim/model/memory.h"
#include "sim/set/set.h"
#include "sim/tool/profile.h"
#include "sim/tool/tool_verbs.h"

namespace carve::sim {
namespace {

std::string uuid_text(const uint8_t (&u)[16]) {
  std::string s = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", u[i]);
    s += two;
    if (i == 3 || i == 5 || i == 7 || i == 9) s += '-';
  }
  return s;
}

struct Row {
  unsigned context;
  int pid;
  std::string name;
  uint64_t overhead, blocks, kernels;
  unsigned percent;
  uint32_t error;
};

struct Picture {
  uint64_t used, free;
  unsigned compute, copy;
  std::vector<Row> rows;
};

Picture look(Set& set, unsigned index) {
  Device& d = *set.devices[index];
  const Locked lock(d, tool_timeout);
  if (!lock.held()) throw Refused(set_stopped);
  const uint64_t now = now_ns();
  sweep(set, index, now, true);
  Picture p = {used_bytes(d), free_bytes(d), compute_percent(d, now), copy_percent(d, now), {}};
  for (unsigned i = 0; i < max_contexts; ++i) {
    const Context& c = d.contexts[i];
    if (!c.in_use) continue;
    Row row = {i,
               0,
               set.file->clients[c.client].name,
               c.overhead_bytes,
               c.block_bytes,
               c.kernels,
               context_percent(d, i, now),
               c.error};
    alive(set, c.client, c.client_generation, &row.pid);
    p.rows.push_back(row);
  }
  return p;
}

void print_json(Set& set) {
  std::cout << "{\"simulated\":true,\"driver\":" << quoted(set.file->driver_version)
            << ",\"cuda\":" << set.file->cuda_version << ",\"devices\":[";
  for (unsigned i = 0; i < set.count; ++i) {
    const Facts& f = set.devices[i]->facts;
    const Picture p = look(set, i);
    std::cout << (i ? "," : "") << "{\"index\":" << i << ",\"profile\":" << quoted(f.profile)
              << ",\"name\":" << quoted(f.name) << ",\"uuid\":" << quoted(uuid_text(f.uuid))
              << ",\"native_bytes\":" << f.native_bytes << ",\"reserved_bytes\":" << f.reserved_bytes
              << ",\"used_bytes\":" << p.used << ",\"free_bytes\":" << p.free
              << ",\"compute_percent\":" << p.compute << ",\"copy_percent\":" << p.copy << ",\"contexts\":[";
    for (size_t r = 0; r < p.rows.size(); ++r) {
      const Row& row = p.rows[r];
      std::cout << (r ? "," : "") << "{\"context\":" << row.context << ",\"pid\":" << row.pid
                << ",\"name\":" << quoted(row.name) << ",\"overhead_bytes\":" << row.overhead
                << ",\"block_bytes\":" << row.blocks << ",\"kernels\":" << row.kernels
                << ",\"compute_percent\":" << row.percent << ",\"error\":" << row.error << "}";
    }
    std::cout << "]}";
  }
  std::cout << "]}\n";
}

void print_text(Set& set) {
  for (unsigned i = 0; i < set.count; ++i) {
    const Facts& f = set.devices[i]->facts;
    const Picture p = look(set, i);
    std::printf("device %u  %s (simulated)  %s\n", i, f.name, uuid_text(f.uuid).c_str());
    std::printf("  memory  %llu MiB native, %llu MiB reserved, %llu MiB free;  compute %u %%, copies %u %%\n",
                static_cast<unsigned long long>(f.native_bytes / MiB),
                static_cast<unsigned long long>(f.reserved_bytes / MiB),
                static_cast<unsigned long long>(p.free / MiB), p.compute, p.copy);
    const Faults& faults = set.devices[i]->faults;
    if (faults.lost) std::printf("  fault   device lost\n");
    if (faults.hang) std::printf("  fault   the next kernel hangs\n");
    if (faults.mig) std::printf("  fault   MIG is on\n");
    if (faults.mps) std::printf("  fault   an MPS server runs\n");
    if (faults.no_accounting) std::printf("  fault   NVML reports no memory of processes\n");
    if (faults.out_of_memory || faults.out_of_memory_above) std::printf("  fault   out of memory\n");
    if (faults.slow_nvml_ns)
      std::printf("  fault   NVML takes %.1f ms a call\n", static_cast<double>(faults.slow_nvml_ns) / 1e6);
    for (const Row& row : p.rows)
      std::printf("  context %2u  pid %-7d %-16s %6llu MiB  %llu kernels  %u %%%s\n", row.context, row.pid,
                  row.name.c_str(), static_cast<unsigned long long>((row.overhead + row.blocks) / MiB),
                  static_cast<unsigned long long>(row.kernels), row.percent,
                  row.error ? ("  error " + std::to_string(row.error)).c_str() : "");
  }
}

}  // namespace

int show(const Arguments& arguments) {
  if (arguments.words.size() != 1) throw Usage("show takes one directory, for example: show /run/simgpu");
  const std::string& dir = arguments.words[0];
  Set set;
  switch (open_set(dir.c_str(), &set)) {
    case Opened::yes: break;
    case Opened::absent:
      throw Refused(dir + " holds no device set; create one with carve-sim create " + dir + " a10x2");
    case Opened::other_version:
      throw Refused(dir + " was made by another release; create it again with carve-sim create");
    case Opened::unreadable: throw Refused(dir + ": cannot open its files for reading and writing");
  }
  wants_json(arguments) ? print_json(set) : print_text(set);
  return 0;
}

}  // namespace carve::sim
