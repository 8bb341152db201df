// The webhooks' certificate, stored in Secret carve-tls. Each replica loads it. The active replica issues and
// renews it (certificates/rotation.h) and writes the bundle of CAs into the two webhook configurations, so
// that the API server trusts it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kubernetes/api/api_client.h"
#include "kubernetes/coordinator/certificates/rotation.h"

namespace carve::kubernetes::coordinator {

inline constexpr const char* certificate_secret = "carve-tls";
inline constexpr kubernetes::Nanoseconds certificate_interval_ns = 60 * kubernetes::second_ns;
inline constexpr kubernetes::Nanoseconds first_certificate_interval_ns =
    2 * kubernetes::second_ns;  // Until a certificate exists.

// Converts between a CertificateSet and the Secret's document. A Secret without data is an empty set.
struct StoredCertificates {
  CertificateSet set;
  std::string resource_version;
};
Result<StoredCertificates, std::string> read_secret(std::string_view json);
std::string secret_patch(const StoredCertificates&);

// Returns the patch that sets this bundle in each webhook of a configuration (a strategic merge patch, which
// merges webhooks by name). Empty if all webhooks have the bundle, or if there are no webhooks.
Result<std::string, std::string> bundle_patch(std::string_view configuration_json, const std::string& bundle);

class WebhookCertificates {
 public:
  struct Hooks {
    std::function<bool()> is_active;
    std::function<int64_t()> utc_s;
    // Called when a different certificate has to be served.
    std::function<void(const CertifiedKey&)> serve;
  };
  // Starts immediately. `names` is comma-separated.
  WebhookCertificates(kubernetes::ApiClient&, std::string name_space, std::string names, Hooks);

  // Returns why there is no certificate. Empty if there is one.
  const std::string& problem() const { return problem_; }

 private:
  void poll();
  void secret_answered(const kubernetes::ApiAnswer&);
  void take(const CertificateSet&);
  void rotate(StoredCertificates);
  void write_bundle(size_t configuration);
  void configuration_answered(size_t configuration, const kubernetes::ApiAnswer&);

  kubernetes::ApiClient& client_;
  const std::string path_, names_;
  const Hooks hooks_;
  CertificateSet set_;
  std::string problem_ = "the certificate has not been read";
  std::unique_ptr<kubernetes::ApiCall> call_, timer_;
};

}  // namespace carve::kubernetes::coordinator
