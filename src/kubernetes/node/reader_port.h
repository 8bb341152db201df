// carve-kubelet's port for programs that read the node: GET over TLS, for accounts with the permission to get
// the path. /metrics combines the agent's metrics and those of this program. The other paths are those of the
// agent's API (wire/api/FORMAT.md), from which the reader gets what root would get. For these, the token must
// have been issued for this node (kubernetes::usage_audience()), so that a program which poses as the node
// gets no token for anything else.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "http/server.h"
#include "kubernetes/api/access/reader_check.h"
#include "os/fd.h"
#include "os/workers.h"
#include "tls/tls.h"
#include "wire/api/exposition.h"

namespace carve::kubernetes::node {

struct ReaderIdentity {
  tls::Identity identity;
  std::string key_pin;  // tls::key_pin() of the certificate.
};
// Returns the identity in the files. If there are none, issues one for this node from a CA that is not kept.
Outcome<ReaderIdentity> reader_identity(const std::string& certificate_file, const std::string& key_file,
                                        const std::string& node, int64_t utc_s);

// The paths of the agent's API that the port serves.
inline constexpr const char* reader_views[] = {"/v1/node", "/v1/devices", "/v1/slices", "/v1/usage"};

class ReaderPort {
 public:
  // Returns the response to GET `target`, a path of reader_views with its query. Called in other threads, and
  // may block.
  using View = std::function<http::Response(const std::string& target)>;

  // Passes the metrics in this format to `done` later, in the loop's thread.
  using Metrics = std::function<void(api::MetricsFormat, kubernetes::ReaderCheck::Done)>;

  // `node` is this node's name.
  ReaderPort(os::Loop&, kubernetes::ApiClient&, os::Fd listener, tls::Identity, const std::string& node,
             Metrics, View);

 private:
  http::Response handle(const http::Request&);
  void give_view(const http::Request&, const kubernetes::ReaderCheck::Done&);

  const tls::Identity identity_;
  const std::string audience_;
  const Metrics metrics_;
  const View view_;
  kubernetes::ReaderCheck readers_;
  os::Workers workers_;
  http::Server server_;  // Declared last, because it uses the other members.
};

}  // namespace carve::kubernetes::node
