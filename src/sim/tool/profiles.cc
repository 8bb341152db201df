#include <cstdio>

#include "sim/tool/profile.h"
#include "sim/tool/tool_verbs.h"

namespace carve::sim {

int profiles(const Arguments& arguments) {
  if (!arguments.words.empty()) throw Usage("profiles takes no argument");
  const bool as_json = wants_json(arguments);
  const char* separator = "[";
  for (const std::string& name : profile_names()) {
    const Facts f = read_profile(name);
    if (as_json) {
      std::printf(
          "%s{\"profile\":%s,\"name\":%s,\"native_bytes\":%llu,\"usable_bytes\":%llu,\"multiprocessors\":%u}",
          separator, quoted(name).c_str(), quoted(f.name).c_str(),
          static_cast<unsigned long long>(f.native_bytes),
          static_cast<unsigned long long>(f.native_bytes - f.reserved_bytes), f.multiprocessors);
      separator = ",";
      continue;
    }
    std::printf("%-10s %-26s %6llu MiB native, %6llu MiB usable, %3u multiprocessors\n", name.c_str(), f.name,
                static_cast<unsigned long long>(f.native_bytes >> 20),
                static_cast<unsigned long long>((f.native_bytes - f.reserved_bytes) >> 20),
                f.multiprocessors);
  }
  if (as_json) std::puts("]");
  return 0;
}

}  // namespace carve::sim
