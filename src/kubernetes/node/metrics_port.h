// carve-kubelet's port for Prometheus: GET /metrics over TLS, for accounts with the permission. The response
// combines the agent's metrics and those of this program.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "http/server.h"
#include "kubernetes/api/access/reader_check.h"
#include "os/fd.h"
#include "tls/tls.h"

namespace carve::kubernetes::node {

// Returns the identity in the files. If there are none, issues one for this node from a CA that is not kept.
Outcome<tls::Identity> metrics_identity(const std::string& certificate_file, const std::string& key_file,
                                        const std::string& node, int64_t utc_s);

class MetricsPort {
 public:
  // `source` passes the text to its argument later, in the loop's thread.
  MetricsPort(os::Loop&, kubernetes::ApiClient&, os::Fd listener, tls::Identity,
              kubernetes::ReaderCheck::Source source);

 private:
  http::Response handle(const http::Request&);

  const tls::Identity identity_;
  const kubernetes::ReaderCheck::Source source_;
  kubernetes::ReaderCheck readers_;
  http::Server server_;  // Declared last, because it uses the other members.
};

}  // namespace carve::kubernetes::node
