// Any bytes as a kubeconfig yield a connection with a server, or a message that begins with the file name.
#include <cstdint>
#include <cstdlib>

#include "kubernetes/api/client/connection.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const std::string text(reinterpret_cast<const char*>(data), size);
  // Every file that a kubeconfig names has the same content.
  const kubernetes::ConnectionSources sources{
      .environment = [](const char*) { return std::string(); },
      .read_file = [&](const std::string&) -> Outcome<std::string> { return text; }};
  const auto connection = kubernetes::read_kubeconfig(text, "/k", sources);
  if (!connection) {
    if (connection.error().message.find("/") == std::string::npos) std::abort();
    return 0;
  }
  const bool has_server =
      connection->server.starts_with("https://") || connection->server.starts_with("http://");
  if (!has_server || connection->certificate_pem.empty() != connection->key_pem.empty()) std::abort();
  if (connection->token.find('\n') != std::string::npos) std::abort();
  return 0;
}
