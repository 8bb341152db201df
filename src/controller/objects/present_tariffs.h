// The tariffs among the objects.
#pragma once

#include "bill/tariff.h"
#include "controller/objects/object_registry.h"

namespace carve::controller {

// Returns the tariff of a stored spec.
bill::Tariff stored_tariff(const std::string& spec);

// Returns the tariffs of all objects, which go with each other.
bill::Tariffs present_tariffs(const ObjectRegistry&);

}  // namespace carve::controller
