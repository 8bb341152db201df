// What fixed-share clients do while there is no arbiter: each runs in its own window of every period, by the
// clock that all processes share. The windows do not overlap, so nobody has to know of the others; left to
// local buckets, 20/30/50 % would become 13/20/38 %, because whose turns collide pay for each other.
#pragma once

#include <span>

#include "share/entitlement.h"

namespace carve::share {

struct Window {
  Ns period = 0;  // 0: no timetable, go.
  Ns offset = 0, length = 0;
};

// The longer, the less is lost at the windows' edges (a wake, a switch of contexts, the last work of the one
// before), and the longer everybody pauses. Of 20 ms three clients lost 5 %.
inline constexpr Ns timetable_period = 60 * ms;

// One window per client, in their order. Burst clients and a sum above 100 % get none: they go, and the
// hardware takes turns.
void make_timetable(std::span<const Entitlement> clients, std::span<Window> out);

}  // namespace carve::share
