// Why a node of the fleet does not serve a request, in a message for users.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "fleet/device_use.h"
#include "fleet/mode_rule.h"

namespace carve::fleet {

// Returns why the node cannot serve the request: the rule under which it is counted, and what each device
// lacks. `number` is the node's number in the engine's fleet, or no value if it has no device; `uses` has a
// row for each device. The node cannot serve the request.
Refusal refusal_on(const place::Fleet&, std::optional<uint32_t> number, const GpuNode&,
                   std::span<const DeviceUse> uses, const Request&, const place::RequestShape&);

}  // namespace carve::fleet
