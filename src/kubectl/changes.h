// What a verb prints with --watch: everything at first, then what has changed. Pure.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "kubectl/table.h"

namespace carve::kubectl {

class Changes {
 public:
  // Returns what is new in `text` since the call before: of tables the lines that it did not have, of a
  // document all of it if it differs.
  std::string since_before(const std::string& text, Form form);
  // Returns whether since_before() was called since this was last asked: whether a round had a result.
  bool take_has_result() { return std::exchange(has_result_, false); }

 private:
  std::string before_;
  std::multiset<std::string> lines_;
  bool has_result_ = false;
};

}  // namespace carve::kubectl
