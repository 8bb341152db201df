// carve-supervise: runs one program in its slice and keeps its exit status and output. The controller's
// launcher, or `carve run -d`, starts it as the program's user. It outlives both and reads a SuperviseRequest
// from standard input.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string_view>

#include "runner/runner.h"
#include "runner/supervision.h"
#include "wire/api/json.h"

namespace {

constexpr const char* help =
    "carve-supervise: runs one program in its slice and keeps its exit status and output.\n"
    "\n"
    "carve-controller and carve run -d start it as the program's user; users do not start it. It reads its\n"
    "request from standard input as one JSON document and takes no options.\n"
    "\n"
    "Exit status: 0 the program has ended, 3 another supervisor holds the directory, 4 this attempt was\n"
    "already started, 125 any other failure; the reason is on stderr.\n";

}  // namespace

int main(int argc, char** argv) {
  using namespace carve;
  constexpr size_t max_request_bytes = 1 << 20;
  if (argc > 1) {
    const bool asks = std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h";
    std::fputs(help, asks ? stdout : stderr);
    return asks ? 0 : 2;
  }
  std::string text;
  char block[4096];
  while (std::cin.read(block, sizeof block), std::cin.gcount() > 0 && text.size() <= max_request_bytes)
    text.append(block, static_cast<size_t>(std::cin.gcount()));
  const auto request = api::read<runner::SuperviseRequest>(text, api::Reading::strict);
  if (!request || request->command.empty()) {
    fmt::print(stderr, "carve-supervise: invalid request on standard input: {}\n",
               request ? "the command is missing" : request.error());
    return runner::failed_status;
  }
  setsid();  // Its session identifies the processes that it starts. Fails if the launcher has created one.
  return runner::supervise(*request);
}
