// Checks the layering of the built files: their exports, the libraries that they need, and their glibc
// version. Reads the files with binutils, which every compiler installs.
#include <gtest/gtest.h>
#include <stdio.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "guest/linkage/hook.h"

namespace carve::test {
namespace {

struct Artefact {
  const char* file;
  const char* soname;
  std::set<std::string> needed;
  bool cuda, nvml, dlsym;
};

const Artefact artefacts[] = {
    {PRELOAD, "libcarve.so", {"libc.so.6"}, true, true, true},
    {SHIM_CUDA, "libcuda.so.1", {"libc.so.6", "/usr/lib/carve/driver/libcuda.so.1"}, true, false, false},
    {SHIM_NVML,
     "libnvidia-ml.so.1",
     {"libc.so.6", "/usr/lib/carve/driver/libnvidia-ml.so.1"},
     false,
     true,
     false},
};

std::vector<std::string> lines(const std::string& command) {
  std::vector<std::string> out;
  FILE* pipe = popen(command.c_str(), "r");
  char line[4096];
  while (pipe != nullptr && fgets(line, sizeof line, pipe) != nullptr) {
    out.emplace_back(line);
    while (!out.back().empty() && (out.back().back() == '\n' || out.back().back() == ' '))
      out.back().pop_back();
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return out;
}

std::string between(const std::string& text, char open, char close) {
  const size_t from = text.find(open), to = text.find(close, from);
  return from == std::string::npos || to == std::string::npos ? "" : text.substr(from + 1, to - from - 1);
}

TEST(Artefact, exports_only_its_hooks) {
  for (const Artefact& a : artefacts) {
    std::set<std::string> expected, found;
    if (a.cuda)
      for (const guest::Hook& h : guest::cuda_table.hooks) expected.insert(h.symbol);
    if (a.nvml)
      for (const guest::Hook& h : guest::nvml_table.hooks) expected.insert(h.symbol);
    if (a.dlsym) expected.insert("dlsym");
    for (const std::string& line : lines(std::string("nm -D --defined-only ") + a.file))
      found.insert(line.substr(line.rfind(' ') + 1));
    EXPECT_EQ(found, expected) << a.file;
  }
}

TEST(Artefact, needs_only_libc_and_for_a_shim_the_driver) {
  for (const Artefact& a : artefacts) {
    std::set<std::string> needed;
    std::string soname;
    for (const std::string& line : lines(std::string("readelf -dW ") + a.file)) {
      if (line.find("(NEEDED)") != std::string::npos) needed.insert(between(line, '[', ']'));
      if (line.find("(SONAME)") != std::string::npos) soname = between(line, '[', ']');
      EXPECT_EQ(line.find("RPATH"), std::string::npos) << line;
      EXPECT_EQ(line.find("RUNPATH"), std::string::npos) << line;
    }
    EXPECT_EQ(needed, a.needed) << a.file;
    EXPECT_EQ(soname, a.soname);
  }
}

TEST(Artefact, loads_on_glibc_2_28) {
  for (const Artefact& a : artefacts) {
    int versioned = 0;
    for (const std::string& line : lines(std::string("nm -D --undefined-only ") + a.file)) {
      const size_t at = line.find("@GLIBC_2.");
      ASSERT_NE(at, std::string::npos) << a.file << " needs a symbol without a version of glibc: " << line;
      EXPECT_LE(std::stoi(line.substr(at + 9)), 28) << line;
      ++versioned;
    }
    EXPECT_GT(versioned, 10);
  }
}

// No constructor runs in the user's process, except that of a shim, which hides names that its driver lacks.
// No data of the library is written before a hook is called.
TEST(Artefact, runs_nothing_when_it_is_loaded) {
  for (const Artefact& a : artefacts) {
    const bool is_shim = std::string(a.file).find("/shim/") != std::string::npos;
    for (const std::string& line : lines(std::string("readelf -dW ") + a.file)) {
      for (const char* entry : {"(INIT)", "(PREINIT_ARRAY)", "(FINI)", "(FINI_ARRAY)", "TEXTREL"})
        EXPECT_EQ(line.find(entry), std::string::npos) << a.file << line;
      if (line.find("(INIT_ARRAY") == std::string::npos) continue;
      EXPECT_TRUE(is_shim) << a.file << line;
      if (line.find("(INIT_ARRAYSZ)") != std::string::npos) {
        EXPECT_NE(line.find(" 8 (bytes)"), std::string::npos) << line;
      }
    }
  }
}

}  // namespace
}  // namespace carve::test
