// Searches for the devices in a thread, because a faulty device can block NVML's calls for seconds or
// forever. An agent without remembered devices (inventory.h) waits for the result; otherwise it serves in the
// meantime.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "node/inventory.h"
#include "node/options.h"
#include "os/loop.h"
#include "os/mutex.h"

namespace carve::node {

struct FoundDevices {
  std::unique_ptr<Nvml> nvml;
  Inventory inventory;
};

class DeviceSearch {
 public:
  using Search = std::function<Outcome<FoundDevices>()>;
  explicit DeviceSearch(Search search);
  ~DeviceSearch();  // Joins the thread if the search has ended; otherwise leaves it running.
  DeviceSearch(const DeviceSearch&) = delete;
  DeviceSearch& operator=(const DeviceSearch&) = delete;

  // Returns the result once; no value if the search does not end within `patience_ns`. If that is negative,
  // waits until the search ends.
  std::optional<Outcome<FoundDevices>> wait(int64_t patience_ns);
  // Calls `found` on the loop when the search has ended.
  void when_found(const os::Loop& loop, std::function<void(Outcome<FoundDevices>)> found);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace carve::node
