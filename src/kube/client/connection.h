// Where Kubernetes' API server is, and how this program proves to it who calls. It comes from the folder that
// a pod's service account has, from a kubeconfig file (YAML or JSON), or from three options of a command
// line.
//
// Of a kubeconfig, server, certificates, token and context are read. What would start a program (exec), send
// a token to any server (insecure-skip-tls-verify), or change who calls (as) is refused with a sentence. The
// forms are those of "client authentication (v1)" and "kubeconfig (v1)" in Kubernetes' reference.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/failure.h"

namespace carve::kube {

inline constexpr size_t max_credential_bytes = 64 << 10;  // Of a token, a certificate or a key.

struct Connection {
  std::string server;      // "https://10.0.0.1:6443", perhaps with a path, without a slash at the end.
  std::string ca_pem;      // Empty: the certificates that this machine trusts.
  std::string token;       // Empty: that of the file, or none.
  std::string token_file;  // Read again each minute and after a 401; empty: none.
  std::string certificate_pem, key_pem;  // The client's own; empty: none.
  std::string name_space = "default";
};

// What a command line says; empty: not given.
struct ConnectionOptions {
  std::string kubeconfig;
  std::string apiserver, ca_file, token_file;
};

// How a machine is read; a test replaces it. Each returns an empty text or a failure if there is nothing.
struct ConnectionSources {
  std::function<std::string(const char* name)> environment;
  std::function<Outcome<std::string>(const std::string& path)> read_file;
};
ConnectionSources this_machine();

// The folder of a pod's service account.
inline constexpr const char* service_account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";

// Returns the connection that the options name: --apiserver, else --kubeconfig, else that of this pod.
Outcome<Connection> find_connection(const ConnectionOptions&, const ConnectionSources& = this_machine());

// Reads a kubeconfig's current context. `path` is its file: other files are named from its folder, and
// sentences begin with it.
Outcome<Connection> read_kubeconfig(std::string_view text, const std::string& path, const ConnectionSources&);

// Returns the token that a file has, without the line's end. Fails if it has none, or has characters that no
// token has.
Outcome<std::string> read_token(const std::string& path, const ConnectionSources&);

}  // namespace carve::kube
