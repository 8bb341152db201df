// Certificates that a program issues for itself: a CA and the certificates that it signs (OpenSSL, ECDSA
// P-256, SHA-256). Times are arguments, in seconds of UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/failure.h"

namespace carve::tls {

inline constexpr int64_t day_s = 86'400;

struct CertifiedKey {
  std::string certificate_pem;
  std::string key_pem;
};

// Creates a CA that may only sign serving certificates.
Outcome<CertifiedKey> make_ca(int64_t now_s, int64_t days);

// Creates a serving certificate for these names (DNS names or IPv4 addresses), signed by the CA.
Outcome<CertifiedKey> make_serving(const CertifiedKey& ca, const std::vector<std::string>& names,
                                   int64_t now_s, int64_t days);

struct CertificateFacts {
  int64_t not_before_s = 0, not_after_s = 0;
};
// Returns no value if the text contains no certificate in PEM format.
std::optional<CertificateFacts> facts_of(const std::string& certificate_pem);

// Returns the SHA-256 of the public key of the first certificate, as "sha256//BASE64" (the form of libcurl's
// CURLOPT_PINNEDPUBLICKEY; RFC 7469 2.4 defines the bytes). No value if the text contains no certificate.
std::optional<std::string> key_pin(const std::string& certificate_pem);
// Returns whether the text has the form of a pin.
bool is_key_pin(const std::string& text);

// Returns whether the certificate is signed with the CA's key.
bool is_signed_by(const std::string& certificate_pem, const std::string& ca_pem);
// Returns whether the key belongs to the certificate.
bool is_key_of(const std::string& key_pem, const std::string& certificate_pem);
// Returns the certificates of a bundle as separate texts, at most 8.
std::vector<std::string> certificates_in(const std::string& bundle_pem);

}  // namespace carve::tls
