#include "kubernetes/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace carve::kubernetes::cli {
namespace {

// Options without a value. For any other option without '=', the next word is its value.
constexpr std::string_view flags[] = {"-w",           "--watch", "-A",     "--all-namespaces",
                                      "--no-headers", "-h",      "--help", "--version"};

// Returns the edit distance: the number of letters to insert, delete or replace.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t i = 0; i <= b.size(); ++i) row[i] = i;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t k = 1; k <= b.size(); ++k) {
      const size_t above = row[k];
      row[k] = std::min({above + 1, row[k - 1] + 1, corner + (a[i - 1] == b[k - 1] ? 0 : 1)});
      corner = above;
    }
  }
  return row.back();
}

}  // namespace

Result<std::vector<std::string>, std::string> arranged(std::vector<std::string> words,
                                                       const std::vector<std::string>& verbs) {
  auto verb = words.begin();
  while (verb != words.end() && verb->starts_with('-')) {
    const bool has_value =
        verb->find('=') == std::string::npos && std::ranges::find(flags, *verb) == std::end(flags);
    ++verb;
    if (has_value && verb != words.end()) ++verb;
  }
  if (verb == words.end()) return words;  // --help, or no verb.
  if (std::ranges::find(verbs, *verb) == verbs.end()) {
    const auto nearest =
        std::ranges::min_element(verbs, {}, [&](const std::string& each) { return distance(each, *verb); });
    const bool is_near = nearest != verbs.end() && distance(*nearest, *verb) <= 2;
    return tl::unexpected(fmt::format("unknown command '{}'{}", verb->substr(0, 40),
                                      is_near ? fmt::format("; did you mean '{}'?", *nearest) : ""));
  }
  std::rotate(words.begin(), verb, verb + 1);
  if (words.front() != "help") return words;
  if (words.size() == 1) return std::vector<std::string>{"--help"};
  return arranged({words[1], "--help"}, verbs);
}

std::string completions(std::vector<std::string> candidates, const std::string& prefix) {
  std::ranges::sort(candidates);
  std::string out;
  for (const std::string& each : candidates)
    if (each.starts_with(prefix)) out += each + "\n";
  return out + ":4\n";  // Means ShellCompDirectiveNoFileComp to kubectl's command-line library.
}

}  // namespace carve::kubernetes::cli
