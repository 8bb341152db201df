// Checks that the driver returns the same pointer for an entry by each way of lookup. The guest library
// replaces the driver's answers by identity (guest/linkage/hook.h), so it would miss an entry whose pointer
// from cuGetProcAddress differs from the one that dlsym returns. The program looks up every export in both
// ways and prints those that differ as JSON.
//
//   identity EXPORTS    EXPORTS is src/abi/cuda_exports.txt. Exit status 0 if no pointers differ, otherwise 1
#include <dlfcn.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "abi/cuda.h"

namespace {

// Returns the name for cuGetProcAddress, without the suffixes for the version and the stream flavour.
std::string base_of(std::string name) {
  for (const char* flavour : {"_ptds", "_ptsz"})
    if (name.size() > 5 && name.ends_with(flavour)) name.resize(name.size() - 5);
  const size_t size = name.size();
  if (size > 3 && name[size - 3] == '_' && name[size - 2] == 'v' && isdigit(name[size - 1]))
    name.resize(size - 3);
  return name;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    fprintf(stderr, "identity: %s\n", dlerror());
    return 77;
  }
  const auto init = reinterpret_cast<decltype(&cuInit)>(dlsym(library, "cuInit"));
  const auto version_of =
      reinterpret_cast<decltype(&cuDriverGetVersion)>(dlsym(library, "cuDriverGetVersion"));
  const auto lookup = reinterpret_cast<decltype(&cuGetProcAddress_v2)>(dlsym(library, "cuGetProcAddress_v2"));
  int newest = 0;
  if (init == nullptr || lookup == nullptr || init(0) != CUDA_SUCCESS ||
      version_of(&newest) != CUDA_SUCCESS) {
    fprintf(stderr, "identity: no driver of CUDA 12 or newer\n");
    return 77;
  }
  std::map<std::string, void*> linked;
  std::set<void*> addresses;
  std::set<std::string> bases;
  std::ifstream exports(argv[1]);
  for (std::string line; std::getline(exports, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::string name = line.substr(0, line.find(' '));
    if (void* found = dlsym(library, name.c_str())) {
      linked[name] = found;
      addresses.insert(found);
      bases.insert(base_of(name));
    }
  }
  // Every version that added an entry, and both flavours of the default stream.
  std::set<void*> answered;
  std::set<std::string> strange;
  for (const std::string& base : bases)
    for (int version = 2000; version <= newest; version += 10)
      for (const cuuint64_t flags : {0, 1, 2}) {
        void* found = nullptr;
        CUdriverProcAddressQueryResult why{};
        if (lookup(base.c_str(), &found, version, flags, &why) != CUDA_SUCCESS || found == nullptr) continue;
        answered.insert(found);
        if (!addresses.contains(found)) strange.insert(base);
      }
  std::set<std::string> unasked;  // Exported but never returned by cuGetProcAddress; harmless, but printed.
  for (const auto& [name, address] : linked)
    if (!answered.contains(address)) unasked.insert(name);
  const auto print = [](const char* key, const std::set<std::string>& names, const char* end) {
    printf("\"%s\": [", key);
    const char* comma = "";
    for (const std::string& name : names) printf("%s\"%s\"", comma, name.c_str()), comma = ", ";
    printf("]%s", end);
  };
  printf("{\"cuda\": %d, \"exports\": %zu, ", newest, linked.size());
  print("no_export_has_this_pointer", strange, ", ");
  print("by_dlsym_alone", unasked, "}\n");
  return strange.empty() ? 0 : 1;
}
