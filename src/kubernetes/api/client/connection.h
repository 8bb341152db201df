// The address of Kubernetes' API server and the credentials for it. They come from the folder of a pod's
// service account, from a kubeconfig file (YAML or JSON), or from three command-line options.
//
// Only the server, the certificates, the token and the context are read from a kubeconfig. Settings that
// would start a program (exec), send a token to any server (insecure-skip-tls-verify), or change the caller's
// identity (as) are rejected with a message. The forms are those of "client authentication (v1)" and
// "kubeconfig (v1)" in Kubernetes' reference.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/failure.h"

namespace carve::kubernetes {

inline constexpr size_t max_credential_bytes = 64 << 10;  // Limits a token, a certificate or a key.

struct Connection {
  std::string server;  // "https://10.0.0.1:6443", perhaps with a path, without a trailing slash.
  std::string ca_pem;  // If empty, this machine's trusted certificates are used.
  // "sha256//BASE64" of the server's public key (tls::key_pin()). If set, the server must have exactly this
  // key, and its certificate's names and issuer do not matter. A request is sent only after this check.
  std::string key_pin = {};
  std::string token;                     // If empty, the token of the file is used, if any.
  std::string token_file;                // Read again each minute and after a 401. Empty if there is no file.
  std::string certificate_pem, key_pem;  // The client's certificate and key. Empty if there are none.
  std::string name_space = "default";
};

// Command-line options. Empty if not given.
struct ConnectionOptions {
  std::string kubeconfig;
  std::string apiserver, ca_file, token_file;
};

// Functions that read this machine's files and environment; tests replace them. Each returns an empty string
// or a failure if the source does not exist.
struct ConnectionSources {
  std::function<std::string(const char* name)> environment;
  std::function<Outcome<std::string>(const std::string& path)> read_file;
};
ConnectionSources this_machine();

// The folder of a pod's service account.
inline constexpr const char* service_account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";

// Returns the connection that --apiserver defines, else the one from --kubeconfig, else that of this pod.
Outcome<Connection> find_connection(const ConnectionOptions&, const ConnectionSources& = this_machine());

// Reads a kubeconfig's current context. `path` is its file: relative paths are resolved against its folder,
// and messages start with it.
Outcome<Connection> read_kubeconfig(std::string_view text, const std::string& path, const ConnectionSources&);

// Reads the token in a file, without its line end. Fails if the file is empty or contains characters that are
// invalid in a token.
Outcome<std::string> read_token(const std::string& path, const ConnectionSources&);

}  // namespace carve::kubernetes
