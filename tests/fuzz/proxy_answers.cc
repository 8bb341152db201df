// HAProxy's answers are parsed by their form. The first byte selects the command that the rest answers. A
// parsed answer has the properties that its users rely on.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "controller/runtime/endpoint_config.h"
#include "controller/runtime/runtime_answer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve::controller;
  if (size < 1) return 0;
  const std::string_view answer(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0: {
      const auto read = read_processes(answer);
      if (read && (read->master <= 0 || read->worker < 0)) std::abort();
      break;
    }
    case 1: {
      const auto read = read_stat(answer);
      if (read && read->size() > answer.size()) std::abort();
      break;
    }
    case 2: {
      const auto read = read_servers(answer);
      if (read && read->size() > answer.size()) std::abort();
      break;
    }
    case 3: {
      const auto value = read_info(answer, "description");
      if (value && value->find('\n') != std::string_view::npos) std::abort();
      break;
    }
    default: {
      const auto proxy = parse_proxy_name(answer);
      if (proxy && !answer.starts_with(proxy_name(proxy->name_space, proxy->service))) std::abort();
      const auto server = parse_server_name(answer);
      if (server && server_name(server->replica, server->port) != answer) std::abort();
    }
  }
  return 0;
}
