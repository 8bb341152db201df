// TLS as a transport for http::Server (OpenSSL 3, linked statically, but not into the agent). The certificate
// chain and the key come from PEM files. It supports TLS 1.2 and newer, without renegotiation and
// compression.
//
// The handshake is part of the first reads and writes, so it never blocks; the server closes a connection
// that is not established after 10 s. Bytes that are not TLS close the connection. A record has at most 16
// KiB.
#pragma once

#include <memory>
#include <string>

#include "core/failure.h"
#include "http/transport.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX; only tls.cc includes its header.

namespace carve::tls {

// A server's certificate and key. Copyable; connections keep the parts that they need.
class Identity {
 public:
  // Opens the files. Fails if a file cannot be read or is not PEM, if the key is encrypted, or if the key
  // does not belong to the certificate; the message contains the file's name.
  static Outcome<Identity> open(const std::string& certificate_file, const std::string& key_file);

  // Like open(), but from texts; messages call them `name`.
  static Outcome<Identity> of_texts(const std::string& certificates_pem, const std::string& key_pem,
                                    const std::string& name);

  // Returns the transport of an accepted connection, for http::Server::Hooks, or null if memory is exhausted.
  std::unique_ptr<http::Transport> accept(os::Fd socket) const;

 private:
  explicit Identity(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace carve::tls
