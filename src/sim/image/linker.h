// The result of cuLink: the concatenated texts of several PTX modules, which cuModuleLoadData reads as one
// module.
#pragma once

#include <string>
#include <string_view>

namespace carve::sim {

class Linker {
 public:
  // Appends one PTX module. The text ends at its first zero byte, or at the end of the bytes.
  void add(std::string_view ptx);

  // Returns all modules, each followed by a new line. Valid until the next call of add().
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace carve::sim
