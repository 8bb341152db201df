#include "node/settings/kept_settings.h"

#include "os/directory.h"
#include "os/process.h"
#include "wire/api/json.h"

namespace carve::node {
namespace {

struct StoredSettings {
  std::optional<MemoryUnit> desired_unit;
  std::optional<MemoryUnit> effective_unit;
  std::string grants_refused;
};

}  // namespace

Outcome<KeptSettings> KeptSettings::open(const std::string& path, std::optional<MemoryUnit> given) {
  StoredSettings stored;
  if (const auto text = os::read_file(path)) {
    auto read = api::read<StoredSettings>(*text, api::Reading::lenient);
    if (!read)
      return failure(FailureKind::unavailable,
                     "cannot read {}: {}; remove the file and set the memory unit again", path, read.error());
    stored = std::move(*read);
  }
  KeptSettings out;
  out.path_ = path;
  out.grants_refused_ = stored.grants_refused;
  out.unit_.desired = given.value_or(stored.desired_unit.value_or(MemoryUnit::gib));
  out.unit_.effective = stored.effective_unit.value_or(out.unit_.desired);
  return out;
}

Outcome<void> KeptSettings::keep(const Setting<MemoryUnit>& unit, const std::string& grants_refused) {
  const StoredSettings next{
      .desired_unit = unit.desired, .effective_unit = unit.effective, .grants_refused = grants_refused};
  if (auto kept = os::replace_file(path_, api::write(next) + "\n"); !kept) return kept;
  unit_ = unit;
  grants_refused_ = grants_refused;
  return {};
}

Outcome<void> KeptSettings::want(MemoryUnit unit, const std::vector<std::string>& holders) {
  return keep(wanted(unit_, unit, holders), grants_refused_);
}

bool KeptSettings::settle(const std::vector<std::string>& holders) {
  const Setting<MemoryUnit> next = settled(unit_, holders);
  if (next == unit_) return false;
  const bool changes = next.effective != unit_.effective;
  if (!changes) {
    unit_ = next;
    return false;
  }
  return keep(next, grants_refused_).has_value();
}

Outcome<void> KeptSettings::refuse_grants(const std::string& message) { return keep(unit_, message); }

}  // namespace carve::node
