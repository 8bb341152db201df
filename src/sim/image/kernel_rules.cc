// Reads kernels.rules. Invalid lines are skipped, because a program under test must not fail because of them.
#include "sim/image/kernel_rules.h"

#include <fcntl.h>
#include <regex.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace carve::sim {
namespace {

struct Compiled {
  regex_t expression;
  Rule rule;
};

bool duration(const std::string& text, double* ns) {
  char* unit = nullptr;
  const double n = std::strtod(text.c_str(), &unit);
  if (unit == text.c_str() || n < 0) return false;
  const std::string u = unit;
  const double factor = u == "ns" ? 1 : u == "us" ? 1e3 : u == "ms" ? 1e6 : u == "s" ? 1e9 : 0;
  *ns = n * factor;
  return factor != 0 && *ns <= 1e18;
}

std::string read_file(const std::string& path) {
  std::string all;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return all;
  char piece[4096];
  for (ssize_t n; all.size() < (1 << 20) && (n = read(fd, piece, sizeof piece)) > 0;)
    all.append(piece, static_cast<size_t>(n));
  close(fd);
  return all;
}

const std::vector<Compiled>& rules(const std::string& directory) {
  static std::once_flag once;
  static std::vector<Compiled>* list = nullptr;
  std::call_once(once, [&] {
    list = new std::vector<Compiled>;
    const std::string text = read_file(directory + "/kernels.rules");
    for (size_t from = 0; from < text.size();) {
      const size_t end = std::min(text.find('\n', from), text.size());
      std::string expression;
      Compiled c = {};
      if (parse_rule(text.substr(from, end - from), &expression, &c.rule) &&
          regcomp(&c.expression, ("^(" + expression + ")$").c_str(), REG_EXTENDED | REG_NOSUB) == 0)
        list->push_back(c);
      from = end + 1;
    }
  });
  return *list;
}

}  // namespace

bool parse_rule(const std::string& line, std::string* expression, Rule* rule) {
  std::vector<std::string> words;
  for (size_t i = 0; i < line.size();) {
    if (line[i] == '#' && words.empty()) return false;
    const size_t end = std::min(line.find_first_of(" \t\r", i), line.size());
    if (end > i) words.push_back(line.substr(i, end - i));
    i = end + 1;
  }
  *rule = {};
  if (words.size() == 2) {
    *expression = words[0];
    return duration(words[1], &rule->each_ns);
  }
  if (words.size() != 4 || words[2] != "*" || !words[1].starts_with("arg") || words[1].size() < 4)
    return false;
  if (words[1].find_first_not_of("0123456789", 3) != std::string::npos || words[1].size() > 6) return false;
  *expression = words[0];
  rule->argument = std::atoi(words[1].c_str() + 3);
  return duration(words[3], &rule->each_ns);
}

bool find_rule(const std::string& directory, const std::string& kernel, Rule* rule) {
  for (const Compiled& c : rules(directory))
    if (regexec(&c.expression, kernel.c_str(), 0, nullptr, 0) == 0) {
      *rule = c.rule;
      return true;
    }
  return false;
}

}  // namespace carve::sim
