// Parses the matrix of `nvidia-smi topo -m`, which operators can obtain and which a snapshot of a fleet
// contains. Its heading may be underlined by escape sequences. Network devices and affinities follow to the
// right of the devices, and a legend follows below.
#include <charconv>
#include <vector>

#include "core/invariant.h"
#include "place/topology.h"

namespace carve::place {
namespace {

// Removes the first line of `rest` and returns it.
std::string_view next_line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

// Returns the words between blanks; escape sequences (ESC [ digits letter) count as blanks.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  const auto word = [&](size_t end) {
    if (end > begin) out.push_back(line.substr(begin, end - begin));
  };
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\x1b') {
      word(i);
      while (i + 1 < line.size() && !(line[i] >= 'a' && line[i] <= 'z')) ++i;
      begin = i + 1;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      word(i);
      begin = i + 1;
    }
  }
  word(line.size());
  return out;
}

// Returns N for the text "GPUN".
std::optional<unsigned> device_of(std::string_view name) {
  unsigned number = 0;
  if (!name.starts_with("GPU") || name.size() > 6) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + 3, name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

}  // namespace

Outcome<Topology> Topology::read(std::string_view matrix, unsigned devices) {
  size_t line_number = 0;
  const auto wrong = [&](std::string_view why) {
    return failure(FailureKind::invalid_argument, "line {}: {}", line_number, why);
  };
  std::vector<unsigned> columns;
  std::vector<Wire> wires;
  DeviceSet told = 0;
  while (!matrix.empty()) {
    const auto words = words_of(next_line(matrix));
    ++line_number;
    if (words.empty() || !device_of(words[0])) continue;
    if (columns.empty()) {  // The heading.
      for (const std::string_view word : words) {
        const auto device = device_of(word);
        if (!device) break;
        if (*device != columns.size())
          return wrong(fmt::format("'{}' found, GPU{} expected", word, columns.size()));
        columns.push_back(*device);
        if (columns.size() > devices)
          return wrong(fmt::format("column {}: the node has {} devices, numbered from 0", word, devices));
      }
      continue;
    }
    const unsigned device = *device_of(words[0]);
    if (device >= columns.size()) return wrong(fmt::format("{} is not in the heading", words[0]));
    if ((told >> device & 1) != 0) return wrong(fmt::format("{} has two lines", words[0]));
    told |= DeviceSet{1} << device;
    if (words.size() <= columns.size())
      return wrong(
          fmt::format("{} links, but the heading names {} devices", words.size() - 1, columns.size()));
    for (const unsigned column : columns) {
      const std::string_view word = words[column + 1];
      if (column == device) {
        if (word != "X")
          return wrong(fmt::format("column GPU{}: '{}' is not X, a device's link to itself", column,
                                   word.substr(0, 20)));
        continue;
      }
      const auto link = parse_link(word);
      if (!link)
        return wrong(
            fmt::format("column GPU{}: '{}' is not a link; use NV1 to NV99, PIX, PXB, PHB, NODE or SYS",
                        column, word.substr(0, 20)));
      for (const Wire& w : wires)
        if (w.from == column && w.to == device && w.link != *link)
          return wrong(fmt::format("column GPU{}: GPU{} to GPU{} over {}, but the opposite direction over {}",
                                   column, device, column, text(*link), text(w.link)));
      wires.push_back({device, column, *link});
    }
  }
  if (columns.size() != devices)
    return failure(FailureKind::invalid_argument, "the heading has {} devices, but the node has {}",
                   columns.size(), devices);
  for (const unsigned device : columns)
    if ((told >> device & 1) == 0) return failure(FailureKind::invalid_argument, "GPU{} has no line", device);
  invariant(devices == 0 || wires.size() == size_t{devices} * (devices - 1), "each pair was read twice");
  return of(devices, wires);
}

}  // namespace carve::place
