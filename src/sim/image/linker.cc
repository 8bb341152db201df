#include "sim/image/linker.h"

#include <algorithm>

namespace carve::sim {

void Linker::add(std::string_view ptx) {
  text_.append(ptx.substr(0, std::min(ptx.find('\0'), ptx.size()))).append("\n");
}

}  // namespace carve::sim
