// The fallback timetable: the windows in which fixed-share clients run while there is no arbiter. Each client
// has its own window in every period of CLOCK_MONOTONIC, which all processes share. The windows do not
// overlap, so the clients need no messages. With local buckets instead, shares of 20/30/50 % became 13/20/38
// %, because clients that ran at the same time paid for each other.
#pragma once

#include <span>

#include "share/entitlement.h"

namespace carve::share {

struct Window {
  Ns period = 0;  // 0 means no timetable; the gate is open.
  Ns offset = 0, length = 0;
};

// A longer period loses less at the edges of the windows (a wake-up, a switch of contexts, the last work of
// the previous client) and makes all pauses longer. With 20 ms three clients lost 5 %.
inline constexpr Ns timetable_period = 60 * ms;

// Writes one window per client, in their order. Burst clients get none, nor do clients whose shares sum to
// more than 100 %: their gates are open and the hardware takes turns.
void make_timetable(std::span<const Entitlement> clients, std::span<Window> out);

}  // namespace carve::share
