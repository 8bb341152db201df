#include <cstdio>

#include "sim/tool/profile.h"
#include "sim/tool/tool_verbs.h"

namespace carve::sim {

int profiles(const Arguments& arguments) {
  if (!arguments.words.empty()) throw Usage("profiles takes no argument");
  for (const std::string& name : profile_names()) {
    const Facts f = read_profile(name);
    std::printf("%-10s %-26s %6llu MiB native, %6llu MiB usable, %3u multiprocessors\n", name.c_str(), f.name,
                static_cast<unsigned long long>(f.native_bytes >> 20),
                static_cast<unsigned long long>((f.native_bytes - f.reserved_bytes) >> 20),
                f.multiprocessors);
  }
  return 0;
}

}  // namespace carve::sim
