#include "place/workload.h"

#include <algorithm>

#include "core/invariant.h"

namespace carve::place {
namespace {

constexpr uint64_t one = uint64_t{1} << 20;

}  // namespace

RequestShape type_of(const RequestShape& a) {
  RequestShape t;
  t.devices = a.devices;
  t.cpu_milli = a.cpu_milli;
  t.host_memory = a.host_memory;
  if (a.devices == 0) return t;
  t.models = a.models;
  t.exclusive = a.exclusive;
  t.share = a.share;
  t.memory = a.memory;
  t.part = a.part;
  return t;
}

void ArrivalCounts::count(const RequestShape& shape) {
  // Differing parts are counted as requests for one device each. The CPU is counted only once.
  for (unsigned i = 0; i < shape.parts.size(); ++i) {
    RequestShape part = shape_of_part(shape, i);
    part.devices = 1;
    if (i != 0) part.cpu_milli = 0, part.host_memory = {};
    count(part);
  }
  if (!shape.parts.empty()) return;
  const RequestShape type = type_of(shape);
  const auto row = std::ranges::lower_bound(rows_, type, {}, &Row::shape);
  if (row != rows_.end() && row->shape == type) {
    row->count += one;
  } else if (rows_.size() < max_types) {
    rows_.insert(row, {type, one});
  } else {
    // If the table is full, the new type replaces the rarest, so that the table has at most max_types rows.
    rows_.erase(std::ranges::min_element(rows_, {}, &Row::count));
    rows_.insert(std::ranges::lower_bound(rows_, type, {}, &Row::shape), {type, one});
  }
  invariant(rows_.size() <= max_types);
  if (++counted_ % half_life_ != 0) return;
  for (Row& r : rows_) r.count /= 2;
  std::erase_if(rows_, [](const Row& r) { return r.count == 0; });
}

WorkloadModel ArrivalCounts::workload() const {
  std::vector<Row> rows = rows_;
  std::ranges::stable_sort(rows, std::ranges::greater{}, &Row::count);
  uint64_t all = 0;
  for (const Row& r : rows) all += r.count;
  invariant(rows.empty() || all != 0, "a count of 0 has no row");
  WorkloadModel out;
  for (const Row& r : rows)
    out.push_back({r.shape, static_cast<int64_t>(static_cast<unsigned __int128>(r.count) * certain / all)});
  return out;
}

WorkloadModel without_host_memory(const WorkloadModel& workload) {
  WorkloadModel out = workload;
  for (Type& t : out) t.shape.host_memory = {};
  std::ranges::sort(out, {}, &Type::shape);
  size_t kept = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (kept != 0 && out[kept - 1].shape == out[i].shape)
      out[kept - 1].weight += out[i].weight;
    else
      out[kept++] = out[i];
  }
  invariant(kept <= out.size());
  out.resize(kept);
  std::ranges::stable_sort(out, std::ranges::greater{}, &Type::weight);
  return out;
}

WorkloadModel typical(const WorkloadModel& workload, Share coverage) {
  int64_t all = 0;
  for (const Type& t : workload) all += t.weight;
  WorkloadModel out;
  int64_t covered = 0;
  for (const Type& t : workload) {
    if (covered * 10000 >= all * coverage.basis_points) break;
    covered += t.weight;
    out.push_back(t);
  }
  for (Type& t : out) t.weight = static_cast<int64_t>(static_cast<__int128>(t.weight) * certain / covered);
  return out;
}

}  // namespace carve::place
