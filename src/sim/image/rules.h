// How long a kernel takes. The set's file kernels.rules is read once per process: lines of a POSIX extended
// regular expression that must match the whole name, and a duration or "argN * duration", which takes the
// launch's own argument for the number of such durations. Without a match it is the profile's launch time
// plus its wave time for each wave of blocks that fills the multiprocessors.
#pragma once

#include <cstdint>
#include <string>

namespace carve::sim {

struct Rule {
  int argument = -1;     // Which argument multiplies, or -1: none.
  double each_ns = 0.0;  // The constant, or what one unit of the argument takes.
};

// True and the rule of the first line that matches. `directory` is the set's.
bool find_rule(const std::string& directory, const std::string& kernel, Rule*);

// One line: "EXPRESSION DURATION" or "EXPRESSION argN * DURATION". False where it is neither.
bool parse_rule(const std::string& line, std::string* expression, Rule*);

}  // namespace carve::sim
