// A server at an HTTPS address, such as a controller on another machine, for client::Client. The server's certificate
// must be valid for the host in the address; a message explains what is wrong with it and how to fix it.
//
// The token is sent only after the certificate has been checked. TLS 1.2 or newer is required. OpenSSL is linked
// statically, and only into programs that use this folder.
#pragma once

#include <memory>
#include <string>

#include "client/client.h"
#include "core/failure.h"

namespace carve::client {

struct HttpsAddress {
  std::string host;  // A name, an IPv4 address, or an IPv6 address without brackets.
  std::string port;
  friend bool operator==(const HttpsAddress&, const HttpsAddress&) = default;
};

// Parses "https://HOST:PORT" or "https://HOST", whose port is 8470. Fails with a message about the text.
Outcome<HttpsAddress> parse_https_address(const std::string& text);

struct HttpsServer {
  HttpsAddress address;
  std::string token = {};   // Empty for none.
  std::string ca_pem = {};  // Certificates that may sign the server's, in PEM. Empty for those of the system.
};

// Returns the server, or a message if `ca_pem` contains no certificate. No connection is made.
Outcome<std::shared_ptr<const Remote>> https_remote(const HttpsServer&, const Settings&);

}  // namespace carve::client
