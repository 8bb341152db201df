// What `carve top` draws, as text: devices and slices in, lines out. Pure, so that a test can read it.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "wire/api/documents.h"

namespace carve::cli {

struct TopView {
  api::Version agent;
  api::DeviceList devices;
  api::SliceList slices;
  uint64_t now_ns = 0;  // UTC.
};

// Lines separated by '\n', no wider than the screen; 100 columns show all but the waits' percentiles. For
// each device a heading, a bar of its memory cut into its slices (granted, and of it in use), a bar of its
// compute (what each slice had of the last second, and what was idle), and a line for each slice. "memory!"
// in the column of isolation: its share is not enforced, and the line above says why.
std::string render(const TopView& view, const Screen& screen);

}  // namespace carve::cli
