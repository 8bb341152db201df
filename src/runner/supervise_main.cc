// carve-supervise: runs one program in its slice, keeps its exit status and its output. It is started by the
// controller's launcher, as the user of the program, and outlives the controller. It reads what to do from
// its standard input (SuperviseRequest).
#include <cstdio>
#include <iostream>
#include <iterator>

#include "runner/runner.h"
#include "runner/supervision.h"
#include "wire/api/json.h"

int main() {
  using namespace carve;
  constexpr size_t max_request_bytes = 1 << 20;
  std::string text;
  char block[4096];
  while (std::cin.read(block, sizeof block), std::cin.gcount() > 0 && text.size() <= max_request_bytes)
    text.append(block, static_cast<size_t>(std::cin.gcount()));
  const auto request = api::read<runner::SuperviseRequest>(text, api::Reading::strict);
  if (!request || request->command.empty()) {
    fmt::print(stderr, "carve-supervise: the request on standard input: {}\n",
               request ? "the command is missing" : request.error());
    return runner::failed_status;
  }
  setsid();  // Its session marks what it starts. Fails if the launcher has made one.
  return runner::supervise(*request);
}
