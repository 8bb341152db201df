#include "node/pages/state_file.h"

#include "wire/api/json.h"

namespace carve::node {

std::string write_state_file(const StateFile& state) { return api::write(state); }

std::optional<StateFile> read_state_file(const std::string& text) {
  auto state = api::read<StateFile>(text, api::Reading::lenient);
  if (!state || state->record.slice.name.empty() || state->record.slice.parts.empty()) return std::nullopt;
  return *std::move(state);
}

}  // namespace carve::node
