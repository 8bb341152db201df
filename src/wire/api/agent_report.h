// The state of an agent as its clients poll it, which is the results of four calls (client/agent_client.h).
#pragma once

#include <string>
#include <vector>

#include "wire/api/device.h"
#include "wire/api/node.h"
#include "wire/api/slice.h"

namespace carve::api {

struct AgentReport {
  Version version;
  Node node;
  std::vector<Device> devices;
  std::vector<std::string> links;  // The links between the devices (DeviceList).
  std::vector<Slice> slices;       // Live slices.
};

}  // namespace carve::api
