// Decides when the coordinator's CA and serving certificate are created and renewed. A CA is valid for 2
// years. A serving certificate is valid for 90 days and renewed after 60. Pure: time is an argument, and the
// caller creates the certificates.
//
// A CA is replaced in three steps, a day apart, so that no API server sees a certificate of a CA that it does
// not trust yet: the new CA is added to the bundle; it signs the serving certificate; the old CA is removed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tls/certificates/certificate.h"

namespace carve::kubernetes::coordinator {

using tls::CertificateFacts, tls::CertifiedKey, tls::day_s;
using tls::certificates_in, tls::facts_of, tls::is_key_of, tls::is_signed_by, tls::make_ca, tls::make_serving;

inline constexpr int64_t ca_days = 730, serving_days = 90;
inline constexpr int64_t renew_ca_days = 90;       // Before it expires.
inline constexpr int64_t renew_serving_days = 30;  // Before it expires.
inline constexpr int64_t step_s = day_s;           // Between the steps of a replacement.

// The content of Secret carve-tls. The strings are empty if it has no content.
struct CertificateSet {
  std::vector<std::string> cas;  // All CAs in the bundle, the newest first.
  std::string ca_key;            // Key of the newest CA.
  CertifiedKey serving;
  std::string names;  // The names for which `serving` was issued.

  friend bool operator==(const CertificateSet& a, const CertificateSet& b) {
    return a.cas == b.cas && a.ca_key == b.ca_key && a.serving.certificate_pem == b.serving.certificate_pem &&
           a.serving.key_pem == b.serving.key_pem && a.names == b.names;
  }
};

enum class RotationStep {
  none,
  begin,         // No usable CA or certificate exists: create both.
  add_ca,        // Create a CA; the certificate of the old CA is kept.
  make_serving,  // Issue a certificate with the newest CA.
  remove_old_cas,
};
RotationStep next_step(const CertificateSet&, const std::string& names, int64_t now_s);

// Returns the set after the step. `names` is comma-separated.
Outcome<CertificateSet> after_step(RotationStep, CertificateSet, const std::string& names, int64_t now_s);

}  // namespace carve::kubernetes::coordinator
