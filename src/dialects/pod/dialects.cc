#include "dialects/pod/dialects.h"

#include <algorithm>

#include "dialects/pod/keys.h"

namespace carve::dialects {
namespace {

constexpr const char* carve_limits[] = {keys::memory, keys::compute, keys::devices};
constexpr const char* ack_limits[] = {keys::ack_memory, keys::ack_core};
constexpr const char* vke_limits[] = {keys::vke_memory, keys::vke_core};
constexpr const char* hami_limits[] = {keys::hami_memory, keys::hami_part, keys::hami_cores,
                                       keys::hami_priority};
constexpr const char* nvidia_limits[] = {keys::nvidia_gpu};

constexpr DialectRow rows[] = {{Dialect::carve, carve_limits, read_carve},
                               {Dialect::ack, ack_limits, read_ack},
                               {Dialect::vke, vke_limits, read_vke},
                               {Dialect::hami, hami_limits, read_hami},
                               {Dialect::nvidia, nvidia_limits, read_nvidia}};

// Returns the first limit of the row that the container has, or null if it has none.
const char* limit_of(const DialectRow& row, const ContainerReader& reader) {
  const auto found = std::ranges::find_if(row.limits, [&](const char* key) { return reader.has_limit(key); });
  return found == row.limits.end() ? nullptr : *found;
}

}  // namespace

std::span<const DialectRow> dialect_rows() { return rows; }

const DialectRow* dialect_of(ContainerReader& reader) {
  const DialectRow* out = nullptr;
  for (const DialectRow& row : rows) {
    for (const char* key : row.limits) reader.limit(key);  // Also reports requests without a limit.
    const char* key = limit_of(row, reader);
    if (key == nullptr) continue;
    if (out == nullptr) {
      out = &row;
    } else if (out->dialect != Dialect::hami || row.dialect != Dialect::nvidia) {  // HAMi's device count.
      reader.refuse(reader.limit(key), "container {} mixes {} and {}; keep one", reader.container().name,
                    limit_of(*out, reader), key);
      return nullptr;
    }
  }
  return out;
}

void refuse_unknown_limits(ContainerReader& reader) {
  for (const auto& [key, limit] : reader.limits_with(keys::prefix))
    if (key != keys::slot && std::ranges::find(carve_limits, key) == std::end(carve_limits))
      reader.refuse(limit, "container {}: {}: unknown limit; use one of {}", reader.container().name,
                    key.substr(0, 80), fmt::join(carve_limits, ", "));
}

}  // namespace carve::dialects
