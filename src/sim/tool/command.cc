#include "sim/tool/command.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <iostream>

namespace carve::sim {
namespace {

constexpr const char help_text[] =
    "carve-sim: simulated GPUs behind replacements of libcuda.so.1 and libnvidia-ml.so.1.\n"
    "\n"
    "  carve-sim create DIR SPEC [--force] [--seed N]\n"
    "      Create a set of devices. SPEC is a profile (a10), several (a10x2, a10x2,t4x1), or a YAML file "
    "with\n"
    "      profiles, counts, NUMA nodes and NVLinks. a10x2@550 has the names and versions of driver 550.\n"
    "      --seed makes the UUIDs reproducible.\n"
    "  carve-sim show DIR [-o json]\n"
    "      Print the devices, their memory, contexts and processes.\n"
    "  carve-sim fault DIR KIND [--device N]\n"
    "      out-of-memory [--count N | --above SIZE]   allocations are refused\n"
    "      xid CODE [--pid PID]                       contexts break and event sets report the error\n"
    "      hung-kernel                                the next kernel never ends\n"
    "      slow-nvml [TIME]                           each NVML call takes TIME (500ms)\n"
    "      device-lost                                the device falls off the bus\n"
    "      mig                                        the device is in MIG mode\n"
    "      mps                                        the device's programs are clients of an MPS server\n"
    "      no-accounting                              NVML keeps no accounts of processes\n"
    "      clear                                      ends all faults; broken contexts stay broken\n"
    "  carve-sim profiles [-o json]\n"
    "      Print the devices that can be simulated.\n"
    "\n"
    "A program uses the set with SIMGPU_DIR=DIR (not needed for /run/simgpu) and "
    "LD_LIBRARY_PATH=.../lib/carve/sim\n"
    "(or lib/carve/sim/550 for driver 550; create prints the folder).\n"
    "With SIMGPU_LOG=FILE, unsupported calls of the program are logged to FILE.\n";

struct Verb {
  std::string_view name;
  int (*act)(const Arguments&);
  std::array<std::string_view, 4> options;
};
constexpr Verb verbs[] = {{"create", create, {"force", "seed"}},
                          {"show", show, {"o"}},
                          {"fault", fault, {"device", "count", "above", "pid"}},
                          {"profiles", profiles, {"o"}}};

int help(const Arguments&) { return std::fputs(help_text, stdout), 0; }

Arguments parse_arguments(int argc, char** argv) {
  Arguments a;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--force") {
      a.options["force"] = "";
    } else if (word == "-o" || word == "--seed" || word == "--device" || word == "--count" ||
               word == "--above" || word == "--pid") {
      if (i + 1 == argc) throw Usage(word + " needs a value");
      a.options[word.substr(word.find_first_not_of('-'))] = argv[++i];
    } else if (word.starts_with("-")) {
      throw Usage(
          "'" + word +
          "' is not an option; the options are --force, --seed, --device, --count, --above, --pid and -o");
    } else {
      a.words.push_back(word);
    }
  }
  return a;
}

}  // namespace

Command parse_command(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  for (int i = 1; i < argc; ++i)
    if (const std::string w = argv[i]; w == "--help" || w == "-h" || (i == 1 && w == "help"))
      return {.act = help, .arguments = {}};
  if (verb.empty()) throw Usage("no command given; use create, show, fault or profiles");
  const Arguments arguments = parse_arguments(argc, argv);
  const auto* const found = std::ranges::find(verbs, verb, &Verb::name);
  if (found == std::end(verbs))
    throw Usage("unknown command '" + verb + "'; use create, show, fault or profiles");
  for (const auto& [option, value] : arguments.options)
    if (std::ranges::find(found->options, option) == std::end(found->options))
      throw Usage((option == "o" ? "-" : "--") + option + " is not an option of " + verb);
  return {found->act, arguments};
}

int complain(const std::exception& reason) {
  const bool usage = dynamic_cast<const Usage*>(&reason) != nullptr;
  std::cerr << "carve-sim: " << reason.what() << (usage ? "; carve-sim --help prints the usage\n" : "\n");
  return usage ? 2 : 1;
}

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s)
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  return out + '"';
}

bool wants_json(const Arguments& arguments) {
  const auto format = arguments.options.find("o");
  if (format == arguments.options.end()) return false;
  if (format->second != "json") throw Usage("-o " + format->second + ": unknown format; use json");
  return true;
}

uint64_t whole_number(const std::string& text, const std::string& what) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || text.empty())
    throw Usage(what + ": '" + text + "' is not a whole number");
  return value;
}

uint64_t nanoseconds(const std::string& text, const std::string& what) {
  constexpr std::pair<const char*, uint64_t> units[] = {
      {"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  for (const auto& [unit, factor] : units) {
    const std::string u = unit;
    if (!text.ends_with(u) || text.size() == u.size() || !isdigit(text[text.size() - u.size() - 1])) continue;
    const uint64_t n = whole_number(text.substr(0, text.size() - u.size()), what);
    if (n > 3'600'000'000'000 / factor) break;
    return n * factor;
  }
  throw Usage(what + ": '" + text + "' is not a duration up to one hour, such as 500ms");
}

}  // namespace carve::sim
