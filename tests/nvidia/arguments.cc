// Calls entries of libcuda with five patterns of arguments, without a context, and prints the results.
//   nvidia_arguments NAMES [FIRST]    NAMES is a file with a name on each line; FIRST is the first call's number
// A line has the name, the pattern, the result, and for each argument that points to memory whether the call
// wrote zeros or other bytes to it. After a call that crashed, the program executes itself again from the
// next call on.
//
// Patterns: 0: all arguments are 0; 1: all point to zeros; 2: the first, third, ... are 1 and the others
// point to zeros; 3: the reverse of 2; 4: all point to bytes of 0xa5.
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr size_t arguments = 12, area = 4096;
constexpr unsigned patterns = 5;
using Entry = int (*)(void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*);

char** command;
char next_call[24];
unsigned char* memory;

// Runs on its own stack, because an entry may have used up the program's.
void crashed(int) {
  constexpr char text[] = " crash\n";
  if (write(1, text, sizeof text - 1) < 0) _exit(3);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_UNBLOCK, &all, nullptr);
  char* again[] = {command[0], command[1], next_call, nullptr};
  execv("/proc/self/exe", again);
  _exit(3);
}

void call(const std::string& name, Entry entry, unsigned pattern) {
  const int filler = pattern == 4 ? 0xa5 : 0;
  memset(memory, filler, arguments * area);
  void* a[arguments];
  for (size_t i = 0; i < arguments; ++i) {
    const bool is_one = (pattern == 2 && i % 2 == 0) || (pattern == 3 && i % 2 == 1);
    a[i] = pattern == 0 ? nullptr : is_one ? reinterpret_cast<void*>(1) : memory + i * area;
  }
  std::string line = name + " " + std::to_string(pattern);
  if (write(1, line.data(), line.size()) < 0) _exit(3);
  line =
      " " + std::to_string(entry(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]));
  for (size_t i = 0; i < arguments; ++i) {
    unsigned zeros = 0, others = 0;
    for (size_t k = 0; k < area; ++k) {
      const int byte = memory[i * area + k];
      if (byte != filler) ++(byte == 0 ? zeros : others);
    }
    if (zeros > 0) line += " " + std::to_string(i) + ":" + std::to_string(zeros) + "zeros";
    if (others > 0) line += " " + std::to_string(i) + ":written";
  }
  line += "\n";
  if (write(1, line.data(), line.size()) < 0) _exit(3);
}

}  // namespace

int main(int count, char** given) {
  if (count < 2) return 2;
  command = given;
  const unsigned long first = count > 2 ? strtoul(given[2], nullptr, 10) : 0;
  std::vector<std::string> names;
  std::ifstream file(given[1]);
  for (std::string line; std::getline(file, line);) names.push_back(line);
  stack_t stack = {};
  stack.ss_size = 1 << 16;
  stack.ss_sp = malloc(stack.ss_size);
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = crashed;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGALRM}) sigaction(signal, &action, nullptr);
  memory = static_cast<unsigned char*>(
      mmap(nullptr, arguments * area, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto init =
      library != nullptr ? reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit")) : nullptr;
  if (init == nullptr || init(0) != 0) {
    fprintf(stderr, "cuInit failed\n");
    return 1;
  }
  for (unsigned long i = first; i < names.size() * patterns; ++i) {
    const std::string& name = names[i / patterns];
    snprintf(next_call, sizeof next_call, "%lu", i + 1);
    alarm(20);
    if (const auto entry = reinterpret_cast<Entry>(dlsym(library, name.c_str())))
      call(name, entry, static_cast<unsigned>(i % patterns));
  }
  _exit(0);  // Skips the driver's cleanup, because the driver may be in an invalid state.
}
