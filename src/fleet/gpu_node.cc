#include "fleet/gpu_node.h"

#include <fmt/format.h>

namespace carve::fleet {

Result<std::optional<place::Topology>, std::string> read_links(const std::vector<std::string>& lines,
                                                               size_t devices) {
  if (lines.empty()) return std::optional<place::Topology>();
  std::string matrix;
  for (size_t i = 0; i < devices; ++i) matrix += fmt::format("\tGPU{}", i);
  for (size_t i = 0; i < lines.size(); ++i) matrix += fmt::format("\nGPU{}\t{}", i, lines[i]);
  auto out = place::Topology::read(matrix, static_cast<unsigned>(devices));
  if (!out) return tl::unexpected(out.error().message);
  return std::optional(*out);
}

}  // namespace carve::fleet
