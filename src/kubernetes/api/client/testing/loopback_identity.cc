#include "kubernetes/api/client/testing/loopback_identity.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdlib>
#include <functional>

#include "core/invariant.h"
#include "os/process.h"

namespace carve::kubernetes {
namespace {

void add_extension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  invariant(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

void write(const std::string& path, const std::function<int(FILE*)>& act) {
  FILE* const file = fopen(path.c_str(), "we");
  invariant(file != nullptr);
  invariant(act(file) == 1);
  fclose(file);
}

}  // namespace

LoopbackIdentity::LoopbackIdentity() {
  char name[] = "/tmp/carve-kube-XXXXXX";
  folder_ = mkdtemp(name);
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* const subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("kube-fake"),
                             -1, -1, 0);
  X509_set_issuer_name(certificate, subject);
  add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate, NID_subject_alt_name, "IP:127.0.0.1");
  invariant(X509_sign(certificate, key, EVP_sha256()) > 0);
  write(folder_ + "/crt", [&](FILE* file) { return PEM_write_X509(file, certificate); });
  write(folder_ + "/key",
        [&](FILE* file) { return PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr); });
  X509_free(certificate);
  EVP_PKEY_free(key);
  ca_pem_ = os::read_file(folder_ + "/crt").value_or("");
}

tls::Identity LoopbackIdentity::server() const {
  auto out = tls::Identity::open(folder_ + "/crt", folder_ + "/key");
  invariant(out.has_value());
  return *out;
}

}  // namespace carve::kubernetes
