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

// Lines separated by '\n', no wider than the screen. For each device a heading, one bar cut into its
// slices (granted, and of it in use), and a line with a bar of its own for each slice.
std::string render(const TopView& view, const Screen& screen);

}  // namespace carve::cli
