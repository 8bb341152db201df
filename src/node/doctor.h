// The checks of `carve doctor` that the agent carries out: its devices, its rights and the machine.
#pragma once

#include "node/agent/agent.h"
#include "node/api/operators.h"
#include "wire/api/doctor.h"

namespace carve::node {

api::Diagnosis diagnose(const Agent&, const Operators&);

}  // namespace carve::node
