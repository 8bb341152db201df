// The functions that main() calls, one per step.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "http/server.h"
#include "kubernetes/api/client/curl_client.h"
#include "kubernetes/coordinator/coordinator.h"
#include "kubernetes/coordinator/coordinator_options.h"
#include "kubernetes/coordinator/webhook_certificates.h"
#include "os/fd.h"
#include "os/loop.h"
#include "tls/tls.h"

namespace carve::kubernetes::coordinator {

std::string host_name();

// Prints the message. Returns the exit status: 2 for an invalid command line, otherwise 1.
int complain(const Failure&);

// Prints the help, the version or the completion script. Returns the exit status.
int print(Options::Mode);

// Finds the API server and the credentials for it.
Outcome<kubernetes::Connection> find_api_server(const Options&);

// The listening sockets. They are opened before requests can be answered, so connections wait.
struct Listeners {
  os::Fd extender, webhook, health;
};
Outcome<Listeners> listen(const Options&);

// The coordinator and its three ports.
class Service {
 public:
  static Outcome<std::unique_ptr<Service>> begin(os::Loop&, kubernetes::ApiClient&, Listeners,
                                                 const Options&);

 private:
  Service(os::Loop&, kubernetes::ApiClient&, Listeners, const Options&, std::optional<tls::Identity>);
  std::string certificate_problem() const;
  void serve_certificate(const CertifiedKey&);

  std::optional<tls::Identity> identity_;  // For new connections; no value until there is a certificate.
  Coordinator coordinator_;
  std::optional<WebhookCertificates> certificates_;  // No value if the certificates come from files.
  std::optional<http::Server> extender_, webhook_, health_;
};

// Serves until a signal arrives. Returns the exit status.
int serve(os::Loop&, const os::Fd& signals);

}  // namespace carve::kubernetes::coordinator
