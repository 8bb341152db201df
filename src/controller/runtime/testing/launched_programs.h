// Helpers for tests that start programs through the launcher.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

namespace carve::controller {

// Returns the path of carve-supervise in build/bin; the tests' programs are in build/tests.
inline std::string supervise_program() {
  const auto own = std::filesystem::read_symlink("/proc/self/exe");
  return (own.parent_path().parent_path() / "bin/carve-supervise").string();
}

// Waits until the condition holds. Returns false after 30 s.
inline bool is_soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 30'000; ++i) {
    if (condition()) return true;
    usleep(1000);
  }
  return false;
}

}  // namespace carve::controller
