// A folder in memory for the files of one fuzzer, which is removed at the end.
#pragma once

#include <cstdlib>
#include <filesystem>

inline const std::filesystem::path& own_folder() {
  struct Folder {
    Folder() {
      char name[] = "/dev/shm/carve-fuzz-XXXXXX";
      if (mkdtemp(name) == nullptr) abort();
      path = name;
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::filesystem::path path;
  };
  static const Folder made;
  return made.path;
}
