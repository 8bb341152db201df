// The current tariffs, from the objects.
#pragma once

#include "bill/tariff.h"
#include "controller/objects/object_registry.h"

namespace carve::controller {

// Returns the tariff of a checked spec.
bill::Tariff tariff_of(const TypedJson& spec);

// Returns the tariffs of all tariff objects. They never conflict.
bill::Tariffs present_tariffs(const ObjectRegistry&);

}  // namespace carve::controller
