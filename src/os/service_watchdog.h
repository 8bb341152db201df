// The watchdog of a service manager (systemd.service(5), WatchdogSec=). The loop reports twice in each
// interval that it is running. A program whose loop hangs is ended and restarted.
#pragma once

#include <cstdint>

#include "os/loop.h"

namespace carve::os {

// Returns the interval in ns that the variables WATCHDOG_USEC and WATCHDOG_PID set for this process, or 0 if
// there is no watchdog (sd_watchdog_enabled(3)).
int64_t watchdog_interval_ns();

// Sends reports from the loop, if there is a watchdog and the variable NOTIFY_SOCKET names its socket.
void report_to_watchdog(Loop&);

}  // namespace carve::os
