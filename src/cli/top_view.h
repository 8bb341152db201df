// Renders the screen of `carve top` as text from devices and slices. A pure function, so that tests can check
// it.
#pragma once

#include <map>
#include <string>

#include "cli/terminal.h"
#include "wire/api/device.h"
#include "wire/api/node.h"
#include "wire/api/slice.h"

namespace carve::cli {

struct TopView {
  api::Version agent;
  api::DeviceList devices;
  api::SliceList slices;
  uint64_t now_ns = 0;                         // UTC.
  std::map<uint32_t, std::string> user_names;  // The owners of the slices, by uid.
};

// Returns lines separated by '\n', no wider than the screen. A wider screen shows more columns: the throttled
// time from 104 on, the share of the last minute from 106, the burst from 118, the waits' percentiles from 128
// and 136. Each device has a heading, its memory as numbers and as a bar, a bar for its compute, a line per
// slice, and a line with the slices that held the device while others waited. The memory bar
// shows each slice's quota and the charged part of it, then the quotas of slices that the caller does not
// see, and last, drawn as '!', the memory used by processes outside of slices. The compute bar shows each
// slice's achieved share of the last second, and the idle rest. "memory only" in the ISOLATION column means
// that the share is not enforced; the line above has the reason.
std::string render(const TopView& view, const Screen& screen);

}  // namespace carve::cli
