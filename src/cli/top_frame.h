// Draws the interactive `carve top`: devices above, the list of slices below, a legend or a question on the
// last line. A pure function, so that tests can check each line at each size.
#pragma once

#include <vector>

#include "cli/styled.h"
#include "cli/top_session.h"

namespace carve::cli {

struct TopSize {
  size_t width = 80, height = 24;
};

struct TopFrame {
  std::vector<StyledLine> lines;  // As many as the screen has, none wider than it.
  size_t page = 1;                // The number of lines of the list.
  size_t first = 0;  // The first line of the list that is drawn, so that the selected row is seen.
};

// `fine` draws with block characters of Unicode. `lost` is why the agent does not respond, or empty.
TopFrame draw(const TopView& view, const TopState& state, const TopHistory& history, const TopSize& size,
              bool fine, const std::string& lost);

}  // namespace carve::cli
