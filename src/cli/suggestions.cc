#include "cli/suggestions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "cli/terminal.h"
#include "objects/kind.h"

namespace carve::cli {
namespace {

// Returns the number of typing errors between two words (the restricted Damerau-Levenshtein distance).
size_t errors_between(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      const bool is_exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_exchanged) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

struct Equivalent {
  std::string_view word, here;
};

constexpr Equivalent equivalents[] = {
    // docker, podman
    {"rm", "carve stop NAME for a slice, carve delete KIND/NAME for an object"},
    {"images", "carve get services -o wide"},
    {"attach", "carve logs -f NAME"},
    {"create", "carve apply -f FILE, or carve slice create"},
    {"restart", "carve rollout restart KIND/NAME"},
    {"start", "carve up for the agent, carve run for a program, carve eas start for a service"},
    {"info", "carve doctor"},
    {"system", "carve doctor"},
    {"--gpus", "--devices N with --memory SIZE, or --exclusive for whole devices"},
    {"--gpu", "--device ID, or --devices N"},
    {"--rm", "nothing: a slice ends with its last process"},
    {"--mem", "--memory SIZE"},
    {"--cpus", "--compute PERCENT for the device's time; carve run does not limit the host's cores"},
    {"--cores", "--compute PERCENT"},
    {"--share", "--compute PERCENT"},
    // kubectl
    {"patch", "carve apply -f FILE, or carve edit KIND/NAME"},
    {"replace", "carve apply -f FILE"},
    {"expose", "spec.port of a service"},
    {"nodes", "carve get nodes"},
    {"services", "carve get services"},
    {"jobs", "carve get jobs"},
    {"queues", "carve get queues"},
    {"pods", "carve get slices, or carve describe job/NAME"},
    {"config", "--controller PATH or CARVE_CONTROLLER"},
    {"taint", "spec.taints of a pool"},
    // nvidia-smi, nvitop, systemctl
    {"smi", "carve devices, carve top"},
    {"monitor", "carve top"},
    {"status", "carve ps for slices, carve doctor for the installation"},
    {"gpus", "carve devices"},
    {"device", "carve devices"},
};

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  const size_t most = word.size() <= 4 ? 1 : 2;
  size_t fewest = most + 1;
  std::string out;
  for (const std::string& candidate : candidates) {
    const size_t errors = errors_between(word, candidate);
    if (errors == fewest && errors <= most) out.clear();
    if (errors < fewest) {
      fewest = errors;
      out = candidate;
    }
  }
  return out;
}

std::string unknown_kind(const std::string& word) {
  std::vector<std::string> plurals;
  for (const objects::KindText& text : objects::kinds) plurals.emplace_back(text.plural);
  const std::string near = nearest(word, plurals);
  return fmt::format("'{}' is not a kind; {}use {}", harmless(word),
                     near.empty() ? "" : fmt::format("did you mean '{}'? Otherwise ", near),
                     fmt::join(plurals, ", "));
}

std::string_view equivalent_of(std::string_view word) {
  const auto* const found = std::ranges::find(equivalents, word, &Equivalent::word);
  return found == std::end(equivalents) ? "" : found->here;
}

}  // namespace carve::cli
