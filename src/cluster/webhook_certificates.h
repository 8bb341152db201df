// The webhooks' certificate, kept in Secret carve-tls. Each replica loads it; the active one makes and renews
// it (certificates/rotation.h), and writes the bundle of CAs into the two webhook configurations, so that the
// API server trusts it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/certificates/rotation.h"
#include "kube/api_client.h"

namespace carve::cluster {

inline constexpr const char* certificate_secret = "carve-tls";
inline constexpr kube::Nanoseconds certificate_interval_ns = 60 * kube::second_ns;
inline constexpr kube::Nanoseconds first_certificate_interval_ns =
    2 * kube::second_ns;  // Until there is one.

// Reads and writes the Secret's document. A Secret without data is an empty set.
struct StoredCertificates {
  CertificateSet set;
  std::string resource_version;
};
Result<StoredCertificates, std::string> read_secret(std::string_view json);
std::string secret_patch(const StoredCertificates&);

// Returns the patch that gives each webhook of a configuration this bundle (strategic merge: webhooks are
// merged by name); empty: they have it, or there is none.
Result<std::string, std::string> bundle_patch(std::string_view configuration_json, const std::string& bundle);

class WebhookCertificates {
 public:
  struct Hooks {
    std::function<bool()> is_active;
    std::function<int64_t()> utc_s;
    // Another certificate than before is to be served.
    std::function<void(const CertifiedKey&)> serve;
  };
  // `names`: with commas. Begins at once.
  WebhookCertificates(kube::ApiClient&, std::string name_space, std::string names, Hooks);

  // Returns why there is no certificate; empty: there is one.
  const std::string& problem() const { return problem_; }

 private:
  void poll();
  void secret_answered(const kube::ApiAnswer&);
  void take(const CertificateSet&);
  void rotate(StoredCertificates);
  void write_bundle(size_t configuration);
  void configuration_answered(size_t configuration, const kube::ApiAnswer&);

  kube::ApiClient& client_;
  const std::string path_, names_;
  const Hooks hooks_;
  CertificateSet set_;
  std::string problem_ = "the certificate has not been read";
  std::unique_ptr<kube::ApiCall> call_, timer_;
};

}  // namespace carve::cluster
