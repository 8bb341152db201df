// carve-kubelet's port for Prometheus: GET /metrics over TLS, for accounts that may get it. The agent's
// figures and those of this program are one text.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "http/server.h"
#include "kube/access/reader_check.h"
#include "os/fd.h"
#include "tls/tls.h"

namespace carve::kubelet {

// Returns the identity of the files; without files, one that is made for this node, of a CA that is not kept.
Outcome<tls::Identity> metrics_identity(const std::string& certificate_file, const std::string& key_file,
                                        const std::string& node, int64_t utc_s);

class MetricsPort {
 public:
  // `source` gives the text to its argument, later and in the loop's thread.
  MetricsPort(os::Loop&, kube::ApiClient&, os::Fd listener, tls::Identity, kube::ReaderCheck::Source source);

 private:
  http::Response handle(const http::Request&);

  const tls::Identity identity_;
  const kube::ReaderCheck::Source source_;
  kube::ReaderCheck readers_;
  http::Server server_;  // Last: it uses the others.
};

}  // namespace carve::kubelet
