// The duration of a kernel. A process reads the set's file kernels.rules once. A line is a POSIX extended
// regular expression, which must match the whole name, and a duration or "argN * duration", where argument N
// of the launch is the multiplier. Without a match, the duration is the profile's launch time plus its wave
// time for each wave of blocks that fills the multiprocessors.
#pragma once

#include <cstdint>
#include <string>

namespace carve::sim {

struct Rule {
  int argument = -1;     // Index of the argument that is the multiplier; -1 if there is none.
  double each_ns = 0.0;  // The duration (ns), or the duration of one unit of the argument.
};

// Finds the rule of the first matching line. Returns false if none matches. `directory` is the directory of
// the set.
bool find_rule(const std::string& directory, const std::string& kernel, Rule*);

// Parses one line: "EXPRESSION DURATION" or "EXPRESSION argN * DURATION". Returns false if the line has
// neither form.
bool parse_rule(const std::string& line, std::string* expression, Rule*);

}  // namespace carve::sim
