#include "tls/certificates/certificate.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

#include <memory>

namespace carve::tls {
namespace {

template <auto Free>
struct Freed {
  void operator()(auto* object) const { Free(object); }
};
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free>>;

const std::string pin_prefix = "sha256//";
constexpr size_t base64_digest_bytes = 44;  // A SHA-256 in base64.

auto refused(const char* what) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  auto out = failure(FailureKind::unavailable, "{}: {}", what, reason != nullptr ? reason : "unknown reason");
  ERR_clear_error();
  return out;
}

Memory memory_of(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(BIO* memory) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory, &bytes);
  return {bytes, static_cast<size_t>(size)};
}

Certificate read_certificate(const std::string& pem) {
  const Memory memory = memory_of(pem);
  Certificate out(PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return out;
}

int no_passphrase(char*, int, int, void*) { return -1; }

Key read_key(const std::string& pem) {
  const Memory memory = memory_of(pem);
  Key out(PEM_read_bio_PrivateKey(memory.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return out;
}

// Sets a serial number, which must be positive and have at most 20 bytes (RFC 5280). 64 random bits are
// enough to be unique.
bool set_serial(X509* certificate) {
  uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) return false;
  return ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  if (extension == nullptr) return false;
  const bool is_added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return is_added;
}

struct Extension {
  int nid;
  std::string value;
};
struct Issuer {
  X509* certificate;
  EVP_PKEY* key;
};

// Creates a key and its certificate. Without `issuer` the certificate is self-signed.
Outcome<CertifiedKey> make(const char* name, const std::vector<Extension>& extensions,
                           const std::optional<Issuer>& issuer, int64_t now_s, int64_t days) {
  constexpr int64_t clock_difference_s = 300;  // Tolerated difference between the clocks of two machines.
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  if (!key || !certificate) return refused("cannot create a key");
  X509* const x = certificate.get();
  bool is_good = X509_set_version(x, X509_VERSION_3) == 1 && set_serial(x) &&
                 ASN1_TIME_set(X509_getm_notBefore(x), now_s - clock_difference_s) != nullptr &&
                 ASN1_TIME_set(X509_getm_notAfter(x), now_s + days * day_s) != nullptr &&
                 X509_set_pubkey(x, key.get()) == 1 &&
                 X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                                            reinterpret_cast<const unsigned char*>(name), -1, -1, 0) == 1;
  X509* const by = issuer ? issuer->certificate : x;
  is_good = is_good && X509_set_issuer_name(x, X509_get_subject_name(by)) == 1;
  for (const Extension& extension : extensions)
    is_good = is_good && add_extension(x, by, extension.nid, extension.value);
  if (!is_good || X509_sign(x, issuer ? issuer->key : key.get(), EVP_sha256()) == 0)
    return refused("cannot create a certificate");
  const Memory certificate_pem(BIO_new(BIO_s_mem())), key_pem(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_pem.get(), x) != 1 ||
      PEM_write_bio_PrivateKey(key_pem.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return refused("cannot write a certificate");
  return CertifiedKey{.certificate_pem = text_of(certificate_pem.get()), .key_pem = text_of(key_pem.get())};
}

bool is_ipv4(const std::string& name) { return name.find_first_not_of("0123456789.") == name.npos; }

// Returns the time in seconds of UTC.
int64_t seconds_of(const ASN1_TIME* time) {
  tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

}  // namespace

Outcome<CertifiedKey> make_ca(int64_t now_s, int64_t days) {
  return make("Carve coordinator CA",
              {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
               {NID_key_usage, "critical,keyCertSign,cRLSign"},
               {NID_subject_key_identifier, "hash"}},
              std::nullopt, now_s, days);
}

Outcome<CertifiedKey> make_serving(const CertifiedKey& ca, const std::vector<std::string>& names,
                                   int64_t now_s, int64_t days) {
  const Certificate ca_certificate = read_certificate(ca.certificate_pem);
  const Key ca_key = read_key(ca.key_pem);
  if (!ca_certificate || !ca_key) return failure(FailureKind::unavailable, "cannot read the CA");
  std::string alternatives;
  for (const std::string& name : names)
    alternatives += (alternatives.empty() ? "" : ",") + std::string(is_ipv4(name) ? "IP:" : "DNS:") + name;
  return make("carve-coordinator",
              {{NID_basic_constraints, "critical,CA:FALSE"},
               {NID_key_usage, "critical,digitalSignature"},
               {NID_ext_key_usage, "serverAuth"},
               {NID_subject_alt_name, alternatives},
               {NID_authority_key_identifier, "keyid"}},
              Issuer{ca_certificate.get(), ca_key.get()}, now_s, days);
}

std::optional<CertificateFacts> facts_of(const std::string& certificate_pem) {
  const Certificate certificate = read_certificate(certificate_pem);
  if (!certificate) return std::nullopt;
  return CertificateFacts{.not_before_s = seconds_of(X509_get0_notBefore(certificate.get())),
                          .not_after_s = seconds_of(X509_get0_notAfter(certificate.get()))};
}

std::optional<std::string> key_pin(const std::string& certificate_pem) {
  const Certificate certificate = read_certificate(certificate_pem);
  if (!certificate) return std::nullopt;
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate.get()), &der);
  if (size <= 0) return std::nullopt;
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<size_t>(size), digest);
  OPENSSL_free(der);
  unsigned char text[base64_digest_bytes + 1];
  EVP_EncodeBlock(text, digest, sizeof digest);
  return pin_prefix + std::string(reinterpret_cast<char*>(text));
}

bool is_key_pin(const std::string& text) {
  if (!text.starts_with(pin_prefix) || text.size() != pin_prefix.size() + base64_digest_bytes) return false;
  // 32 bytes are 43 digits and one '='.
  const std::string_view digits(text.data() + pin_prefix.size(), base64_digest_bytes - 1);
  return text.back() == '=' && digits.find_first_not_of(
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789+/") == std::string_view::npos;
}

bool is_signed_by(const std::string& certificate_pem, const std::string& ca_pem) {
  const Certificate certificate = read_certificate(certificate_pem), ca = read_certificate(ca_pem);
  const bool is_signed = certificate && ca && X509_verify(certificate.get(), X509_get0_pubkey(ca.get())) == 1;
  ERR_clear_error();
  return is_signed;
}

bool is_key_of(const std::string& key_pem, const std::string& certificate_pem) {
  const Certificate certificate = read_certificate(certificate_pem);
  const Key key = read_key(key_pem);
  const bool is_its = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  return is_its;
}

std::vector<std::string> certificates_in(const std::string& bundle_pem) {
  constexpr size_t max_certificates = 8;
  constexpr std::string_view begin = "-----BEGIN CERTIFICATE-----", end = "-----END CERTIFICATE-----";
  std::vector<std::string> out;
  size_t at = 0;
  while (out.size() < max_certificates && (at = bundle_pem.find(begin, at)) != bundle_pem.npos) {
    const size_t last = bundle_pem.find(end, at);
    if (last == bundle_pem.npos) break;
    out.push_back(bundle_pem.substr(at, last + end.size() - at) + "\n");
    at = last + end.size();
  }
  return out;
}

}  // namespace carve::tls
