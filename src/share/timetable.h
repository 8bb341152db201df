// The fallback timetable: the windows in which fixed-share clients run while there is no arbiter. Each client
// has its own window in every period of CLOCK_MONOTONIC, which all processes share. The windows do not
// overlap, so the clients need not communicate. With a local token bucket in each client instead, shares of
// 20/30/50 % became 13/20/38 %, because clients that ran at the same time paid for each other.
#pragma once

#include <span>

#include "share/entitlement.h"

namespace carve::share {

struct Window {
  Ns period = 0;  // 0 means no timetable; the gate is open.
  Ns offset = 0, length = 0;
};

// A longer period loses less time at the edges of the windows (a wake-up, a context switch, the last work of
// the previous client), but makes all pauses longer. With 20 ms, three clients lost 5 % of the time.
inline constexpr Ns timetable_period = 60 * ms;

// Writes one window per client, in their order. Burst clients get no window, and if the shares sum to more
// than 100 %, no client gets one. Their gates are open and the hardware switches between them.
void make_timetable(std::span<const Entitlement> clients, std::span<Window> out);

}  // namespace carve::share
