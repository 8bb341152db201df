// Prints the answer of each way to look up a name of the driver, one line for each way and name.
//   nvidia_lookups LIBRARY NAMES [RUNTIME]
//   LIBRARY   libcuda.so.1 or libnvidia-ml.so.1, loaded by its soname
//   NAMES     a file with a name on each line
//   RUNTIME   a libcudart, for cudaGetDriverEntryPoint; this initialises the driver
// An answer is the first name for which dlsym returns the same address, "-" if there is none, or "?" for an
// address that dlsym never returns. So the outputs of two processes are equal if and only if the look-ups
// find the same names and agree about their identity.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

void* library;
std::vector<std::string> names;
std::map<const void*, std::string> first_name;

std::string label(const void* address) {
  if (address == nullptr) return "-";
  const auto found = first_name.find(address);
  return found != first_name.end() ? found->second : "?";
}

// Returns the name for cuGetProcAddress, such as "cuMemcpy" for "cuMemcpy_v2_ptds".
std::string base_of(std::string name) {
  for (const char* flavour : {"_ptds", "_ptsz"})
    if (name.ends_with(flavour)) name.resize(name.size() - 5);
  const size_t n = name.size();
  if (n > 3 && name[n - 3] == '_' && name[n - 2] == 'v' && name[n - 1] >= '2' && name[n - 1] <= '9')
    name.resize(n - 3);
  return name;
}

template <class F>
F symbol(void* in, const char* name) {
  return reinterpret_cast<F>(dlsym(in, name));
}

void by_name() {
  void* const program = dlopen(nullptr, RTLD_NOW);
  for (const std::string& name : names) {
    printf("dlsym %s %s\n", name.c_str(), label(dlsym(library, name.c_str())).c_str());
    printf("dlvsym %s %s\n", name.c_str(), label(dlvsym(library, name.c_str(), "NONE")).c_str());
    printf("dlopen(NULL) %s %s\n", name.c_str(), label(dlsym(program, name.c_str())).c_str());
    printf("RTLD_DEFAULT %s %s\n", name.c_str(), label(dlsym(RTLD_DEFAULT, name.c_str())).c_str());
    printf("RTLD_NEXT %s %s\n", name.c_str(), label(dlsym(RTLD_NEXT, name.c_str())).c_str());
  }
}

// `ask` returns the answer for a version. Prints each version at which the answer changes.
void by_version(const char* way, const std::string& name, unsigned flags,
                const std::function<std::string(int)>& ask) {
  std::string before = "nothing";
  printf("%s/%u %s", way, flags, name.c_str());
  for (int version = 1990; version <= 14000; version += 10) {
    const std::string now = ask(version);
    if (now != before) printf(" %d:%s", version, now.c_str());
    before = now;
  }
  puts("");
}

using V1 = int (*)(const char*, void**, int, uint64_t);
using V2 = int (*)(const char*, void**, int, uint64_t, int*);

std::string answer(int result, const void* address, int status) {
  return std::to_string(result) + "/" + std::to_string(status) + "/" + label(address);
}

// cuGetProcAddress in one of its forms. A form that does not find cuInit has no entry of the driver behind
// it.
struct Form {
  const char* name;
  std::function<std::string(const char* symbol, int version, unsigned flags)> ask;
};

std::vector<Form> forms() {
  std::vector<Form> out;
  for (const char* name : {"cuGetProcAddress", "cuGetProcAddress_ptsz"})
    if (const auto get = symbol<V1>(library, name))
      out.push_back({name, [get](const char* symbol, int version, unsigned flags) {
                       void* address = nullptr;
                       const int result = get(symbol, &address, version, flags);
                       return answer(result, address, 0);
                     }});
  for (const char* name : {"cuGetProcAddress_v2", "cuGetProcAddress_v2_ptsz"})
    if (const auto get = symbol<V2>(library, name))
      out.push_back({name, [get](const char* symbol, int version, unsigned flags) {
                       void* address = nullptr;
                       int status = -1;
                       const int result = get(symbol, &address, version, flags, &status);
                       return answer(result, address, status);
                     }});
  std::erase_if(out, [](const Form& form) {
    const bool is_empty = form.ask("cuInit", 11030, 0).starts_with("500/");
    if (is_empty) printf("%s is empty\n", form.name);
    return is_empty;
  });
  return out;
}

void by_proc_address() {
  std::set<std::string> asked(names.begin(), names.end());
  for (const std::string& name : names) asked.insert(base_of(name));
  for (const char* unknown : {"", "cuNoSuchEntry", "cuinit", "cuMemAlloc_v9"}) asked.insert(unknown);
  for (const Form& form : forms())
    for (const std::string& name : asked)
      for (unsigned flags = 0; flags <= 4; ++flags)
        by_version(form.name, name, flags,
                   [&](int version) { return form.ask(name.c_str(), version, flags); });
}

void by_runtime(const char* path) {
  void* const runtime = dlopen(path, RTLD_NOW);
  if (runtime == nullptr) {
    printf("%s\n", dlerror());
    return;
  }
  // Without the status, the last argument is ignored (11.8).
  const auto get = symbol<int (*)(const char*, void**, uint64_t, int*)>(runtime, "cudaGetDriverEntryPoint");
  const auto by = symbol<int (*)(const char*, void**, unsigned, uint64_t, int*)>(
      runtime, "cudaGetDriverEntryPointByVersion");
  for (const std::string& whole : names) {
    const std::string name = base_of(whole);
    for (unsigned flags = 0; flags <= 3; ++flags) {
      void* address = nullptr;
      int status = 0;
      if (get != nullptr) {
        const int result = get(name.c_str(), &address, flags, &status);
        printf("cudaGetDriverEntryPoint/%u %s %s\n", flags, name.c_str(),
               answer(result, address, status).c_str());
      }
      for (const unsigned version : {3020u, 7000u, 11030u, 12000u, 12040u}) {
        address = nullptr;
        status = 0;
        if (by == nullptr) continue;
        const int result = by(name.c_str(), &address, version, flags, &status);
        printf("cudaGetDriverEntryPointByVersion/%u/%u %s %s\n", version, flags, name.c_str(),
               answer(result, address, status).c_str());
      }
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  std::ifstream file(arguments[2]);
  for (std::string line; std::getline(file, line);) names.push_back(line);
  library = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    puts(dlerror());
    return 1;
  }
  const char* const error = dlerror();
  printf("dlerror after dlopen: %s\n", error != nullptr ? error : "none");
  for (const std::string& name : names)
    if (const void* address = dlsym(library, name.c_str())) first_name.try_emplace(address, name);
  if (count > 3) {
    by_runtime(arguments[3]);
    return 0;
  }
  by_name();
  by_proc_address();
}
