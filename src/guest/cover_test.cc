// Checks that the coverage data agrees with the tables of hooks, and contains everything that any driver
// exports (the union of what CUDA 11.8, 12.9, 13.0 and 13.5 declare: src/abi/cuda_exports.txt). An entry
// point that takes memory or launches work and is neither hooked nor exempt fails this test; on a user's
// machine, `carve doctor` warns about it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "guest/linkage/hook.h"

namespace carve::guest {
namespace {

struct Row {
  std::string pattern, status, reason;
};

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*') {
    for (size_t skip = 0; skip <= name.size(); ++skip)
      if (matches(pattern.substr(1), name.substr(skip))) return true;
    return false;
  }
  return !name.empty() && pattern[0] == name[0] && matches(pattern.substr(1), name.substr(1));
}

std::vector<Row> coverage() {
  std::vector<Row> rows;
  std::ifstream in(COVERAGE);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    Row row;
    std::istringstream words(line);
    words >> row.pattern >> row.status >> std::ws;
    std::getline(words, row.reason);
    rows.push_back(row);
  }
  return rows;
}

// The file of exempt entry points has no status column: each row is exempt.
std::vector<Row> exempt_from_nvml() {
  std::vector<Row> rows;
  std::ifstream in(NVML_EXEMPT);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    Row row{.pattern = "", .status = "exempt", .reason = ""};
    std::istringstream words(line);
    words >> row.pattern >> std::ws;
    std::getline(words, row.reason);
    rows.push_back(row);
  }
  return rows;
}

std::vector<std::string> exports(const char* path) {
  std::vector<std::string> names;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') names.push_back(line.substr(0, line.find(' ')));
  return names;
}

const Row* row_of(const std::vector<Row>& rows, const std::string& name) {
  const auto row = std::ranges::find_if(rows, [&](const Row& r) { return matches(r.pattern, name); });
  return row == rows.end() ? nullptr : &*row;
}

// Returns whether the name matches an entry point that allocates memory or launches work.
bool takes_something(const std::string& name) {
  static const char* const like[] = {
      "cuMem*",        "cuArray*",         "cuMipmapped*",      "cuGraphAdd*",
      "cuLaunch*",     "cuGraphLaunch*",   "cu*Create*",        "cuImport*",
      "cuIpc*",        "cuMulticast*",     "cuGraphUpload*",    "cuGraphInstantiate*",
      "cuModuleLoad*", "cuLibraryLoad*",   "cuExternalMemory*", "cuDevicePrimaryCtx*",
      "cuCtxSetLimit", "cuDevice*MemPool", "cuDevice*GraphMem*"};
  return std::ranges::any_of(like, [&](const char* p) { return matches(p, name); });
}

TEST(Coverage, lists_exactly_the_hooks_of_the_cuda_table) {
  const auto rows = coverage();
  ASSERT_GT(rows.size(), 50u);
  for (const Hook& hook : cuda_table.hooks) {
    const Row* row = row_of(rows, hook.symbol);
    ASSERT_NE(row, nullptr) << hook.symbol;
    EXPECT_EQ(row->status, "hooked") << hook.symbol;
  }
  for (const Row& row : rows) {
    EXPECT_TRUE(row.status == "hooked" || row.status == "exempt") << row.pattern;
    EXPECT_FALSE(row.reason.empty()) << row.pattern;
    EXPECT_EQ(row.status == "hooked", find_hook(row.pattern) != nullptr) << row.pattern;
  }
}

TEST(Coverage, covers_every_entry_point_that_takes_memory_or_launches) {
  const auto rows = coverage();
  size_t seen = 0;
  for (const std::string& name : exports(CUDA_EXPORTS)) {
    if (!takes_something(name)) continue;
    ++seen;
    EXPECT_NE(row_of(rows, name), nullptr)
        << name << " needs a row with the status 'hooked' or 'exempt' and a reason";
  }
  EXPECT_GT(seen, 200u);
}

// To the linker, each variant of a hooked entry point is a separate function.
TEST(Coverage, hooks_all_variants_of_a_hooked_entry_point) {
  const auto rows = coverage();
  const auto names = exports(CUDA_EXPORTS);
  for (const Hook& hook : cuda_table.hooks) {
    for (const char* suffix : {"_v2", "_v3", "_v4", "_ptsz", "_ptds"}) {
      const std::string variant = std::string(hook.symbol) + suffix;
      if (std::ranges::count(names, variant) == 0) continue;
      const Row* row = row_of(rows, variant);
      EXPECT_TRUE(row != nullptr && row->status == "hooked") << variant;
    }
  }
}

TEST(Coverage, names_only_entry_points_that_some_driver_exported) {
  const auto cuda = exports(CUDA_EXPORTS), nvml = exports(NVML_EXPORTS);
  ASSERT_GT(cuda.size(), 500u);
  for (const Hook& hook : cuda_table.hooks)
    EXPECT_TRUE(std::ranges::count(cuda, hook.symbol) == 1) << hook.symbol;
  for (const Hook& hook : nvml_table.hooks)
    EXPECT_TRUE(std::ranges::count(nvml, hook.symbol) == 1) << hook.symbol;
  for (const Row& row : coverage())
    EXPECT_TRUE(std::ranges::any_of(cuda, [&](const std::string& n) { return matches(row.pattern, n); }))
        << row.pattern;
}

TEST(Coverage, has_each_nvml_entry_point_either_hooked_or_exempt) {
  const auto names = exports(NVML_EXPORTS);
  const auto rows = exempt_from_nvml();
  ASSERT_GT(names.size(), 400u);
  std::set<std::string> used;
  for (const std::string& name : names) {
    if (std::ranges::count(nvml_table.hooks, name, &Hook::symbol) == 1) continue;
    const Row* row = row_of(rows, name);
    ASSERT_NE(row, nullptr) << name << " needs a hook or a row in nvml/exempt.txt";
    used.insert(row->pattern);
  }
  for (const Row& row : rows) {
    EXPECT_TRUE(used.contains(row.pattern))
        << row.pattern << " only matches names that an earlier row matches";
    EXPECT_FALSE(row.reason.empty()) << row.pattern;
  }
}

TEST(Coverage, hooks_all_variants_of_a_hooked_nvml_entry_point) {
  const auto names = exports(NVML_EXPORTS);
  for (const Hook& hook : nvml_table.hooks)
    for (const char* suffix : {"_v1", "_v2", "_v3", "_v4", "V"}) {
      const std::string variant = std::string(hook.symbol) + suffix;
      if (std::ranges::count(names, variant) == 0) continue;
      EXPECT_EQ(std::ranges::count(nvml_table.hooks, variant, &Hook::symbol), 1) << variant;
    }
}

}  // namespace
}  // namespace carve::guest
