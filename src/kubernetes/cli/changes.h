// The output of a verb with --watch: first the complete output, then only changes. Pure.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "kubernetes/cli/table.h"

namespace carve::kubernetes::cli {

class Changes {
 public:
  // Returns the part of `text` that is new since the previous call: for tables the new lines, for a document
  // the whole text if it differs.
  std::string since_before(const std::string& text, Form form);
  // Returns whether since_before() has been called since the previous call of this function. False if the
  // last query failed.
  bool take_has_result() { return std::exchange(has_result_, false); }

 private:
  std::string before_;
  std::multiset<std::string> lines_;
  bool has_result_ = false;
};

}  // namespace carve::kubernetes::cli
