#include "place/workload.h"

#include <algorithm>

namespace carve::place {
namespace {

constexpr uint64_t one = uint64_t{1} << 20;

}  // namespace

Ask type_of(const Ask& a) {
  Ask t;
  t.cards = a.cards;
  t.cpu_milli = a.cpu_milli;
  if (a.cards == 0) return t;
  t.models = a.models;
  t.exclusive = a.exclusive;
  t.share = a.share;
  t.memory = a.memory;
  t.part = a.part;
  return t;
}

void Census::count(const Ask& ask) {
  const Ask type = type_of(ask);
  const auto row = std::ranges::lower_bound(rows_, type, {}, &Row::ask);
  if (row != rows_.end() && row->ask == type) {
    row->count += one;
  } else if (rows_.size() < most_types) {
    rows_.insert(row, {type, one});
  } else {
    // Full: the rarest makes room, so that a stream of oddities cannot grow the census.
    rows_.erase(std::ranges::min_element(rows_, {}, &Row::count));
    rows_.insert(std::ranges::lower_bound(rows_, type, {}, &Row::ask), {type, one});
  }
  if (++counted_ % half_life_ != 0) return;
  for (Row& r : rows_) r.count /= 2;
  std::erase_if(rows_, [](const Row& r) { return r.count == 0; });
}

Workload Census::typical(Share coverage) const {
  std::vector<Row> rows = rows_;
  std::ranges::stable_sort(rows, std::ranges::greater{}, &Row::count);
  uint64_t all = 0;
  for (const Row& r : rows) all += r.count;
  uint64_t covered = 0;
  size_t used = 0;
  while (used < rows.size() && covered * 10000 < all * coverage.basis_points) covered += rows[used++].count;
  rows.resize(used);
  Workload out;
  for (const Row& r : rows)
    out.push_back({r.ask, static_cast<int64_t>(static_cast<unsigned __int128>(r.count) * certain / covered)});
  return out;
}

}  // namespace carve::place
