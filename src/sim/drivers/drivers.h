// The drivers that the simulator can imitate. Each has its own libraries, which export exactly that driver's names
// (libcuda.txt, libnvidia-ml.txt), because a program finds names by dlsym, before any device is known. The
// libraries of driver 0 export the names of all drivers and are used for sets that do not name a driver.
#pragma once

#include <cstdint>

namespace carve::sim {

struct Driver {
  unsigned major;
  const char* version;
  int cuda_version;  // 12040 is 12.4.
};

inline constexpr Driver drivers[] = {
#include "sim/drivers/drivers.inc"
};
inline constexpr Driver any_driver = {0, "580.65.06", 13000};

// Returns the driver with this major number, or `any_driver`.
constexpr const Driver& driver_of(unsigned major) {
  for (const Driver& driver : drivers)
    if (driver.major == major) return driver;
  return any_driver;
}

}  // namespace carve::sim

// The driver whose library this is; 0 if it exports the names of all drivers. Defined by the generated
// exports.S.
extern "C" const uint32_t carve_sim_driver;
