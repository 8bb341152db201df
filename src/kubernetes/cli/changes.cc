#include "kubernetes/cli/changes.h"

#include <sstream>

namespace carve::kubernetes::cli {

std::string Changes::since_before(const std::string& text, Form form) {
  has_result_ = true;
  if (form == Form::json || form == Form::yaml) {
    if (text == before_) return "";
    const bool is_first = before_.empty();
    before_ = text;
    return is_first || form == Form::json ? text : "---\n" + text;
  }
  std::multiset<std::string> before = std::exchange(lines_, {});
  std::string out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines_.insert(line);
    if (const auto known = before.find(line); known != before.end())
      before.erase(known);
    else
      out += line + "\n";
  }
  return out;
}

}  // namespace carve::kubernetes::cli
