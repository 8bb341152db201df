// The options of carve-coordinator's command line.
#pragma once

#include <string>
#include <vector>

#include "kubernetes/api/client/connection.h"
#include "os/command_line.h"
#include "os/tcp.h"

namespace carve::kubernetes::coordinator {

struct Options {
  kubernetes::ConnectionOptions connection;
  std::string name_space = "carve-system";  // Namespace of the coordinator's own objects.
  std::string lease_namespace = "carve-system", lease_name = "carve-scheduler";
  std::string identity;  // The part of the Lease holder's name before "_uuid".
  os::TcpAddress extender{.host = "127.0.0.1", .port = 9470};
  os::TcpAddress webhook{.host = "0.0.0.0", .port = 9443};
  os::TcpAddress health{.host = "0.0.0.0", .port = 9471};
  std::string tls_certificate, tls_key;  // PEM files; if empty, the coordinator issues its own.
  bool allows_unknown_gpu_requests = false;
  std::string log_level = "info";

  // `serve` runs the coordinator. The other modes print a text.
  enum class Mode { serve, help, version, completion } mode = Mode::serve;

  std::string lease_path() const;
};

// Returns the options. Fails with a message about the invalid option (exit status 2). `host_name` is this
// machine's.
Outcome<Options> parse_options(int argc, char** argv, const std::string& host_name);

std::string help_text();

// Returns the script of `carve-coordinator --completion bash`.
std::string completion_script();

}  // namespace carve::kubernetes::coordinator
