#include "tls/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

namespace carve::tls {
namespace {

template <auto Free>
struct Freed {
  void operator()(auto* object) const { Free(object); }
};
using File = std::unique_ptr<FILE, Freed<fclose>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free>>;

// Returns the reason of OpenSSL's last error and clears all errors of the thread.
std::string reason() {
  const char* text = ERR_reason_error_string(ERR_peek_last_error());
  const std::string out = text != nullptr ? text : "unknown reason";
  ERR_clear_error();
  return out;
}

// Without this callback, OpenSSL prompts at the terminal for the passphrase of an encrypted key.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

constexpr size_t max_file_bytes = 1 << 20;

Outcome<std::string> read_file(const char* what, const std::string& path) {
  const File file(fopen(path.c_str(), "re"));
  if (!file)
    return failure(FailureKind::not_found, "the {} {} cannot be read: {}", what, path, strerror(errno));
  std::string out(max_file_bytes, '\0');
  out.resize(fread(out.data(), 1, out.size(), file.get()));
  return out;
}

Memory memory_of(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The first certificate is the server's; the others are its chain.
Outcome<void> use_certificates(SSL_CTX* context, const std::string& pem, const std::string& path) {
  const Memory file = memory_of(pem);
  const Certificate own(PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr));
  if (!own)
    return failure(FailureKind::invalid_argument, "the file {} contains no PEM certificate: {}", path,
                   reason());
  if (SSL_CTX_use_certificate(context, own.get()) != 1)
    return failure(FailureKind::invalid_argument, "the certificate {} cannot be used: {}", path, reason());
  while (Certificate next{PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr)})
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1)
      return failure(FailureKind::invalid_argument, "the chain in {} cannot be used: {}", path, reason());
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (!at_end)
    return failure(FailureKind::invalid_argument,
                   "the file {} contains a certificate that is not in PEM format: {}", path, reason());
  ERR_clear_error();
  return {};
}

Outcome<void> use_key(SSL_CTX* context, const std::string& pem, const std::string& path,
                      const std::string& certificate_path) {
  const Memory file = memory_of(pem);
  bool encrypted = false;
  const Key key(PEM_read_bio_PrivateKey(file.get(), nullptr, no_passphrase, &encrypted));
  if (encrypted)
    return failure(FailureKind::invalid_argument,
                   "the key {} is encrypted; decrypt it: 'openssl pkey -in {} -out FILE'", path, path);
  if (!key)
    return failure(FailureKind::invalid_argument, "the file {} contains no PEM private key: {}", path,
                   reason());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    ERR_clear_error();
    return failure(FailureKind::invalid_argument, "the key {} does not belong to the certificate {}", path,
                   certificate_path);
  }
  return {};
}

// OpenSSL's own socket BIO uses write(2), which raises SIGPIPE if the peer has closed the connection.
int bio_write(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto fd = static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
  const ssize_t sent = send(fd, bytes, static_cast<size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto fd = static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
  const ssize_t received = recv(fd, bytes, static_cast<size_t>(size), MSG_DONTWAIT);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(received);
}

long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "carve socket");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

class TlsTransport final : public http::Transport {
 public:
  TlsTransport(os::Fd socket, std::unique_ptr<SSL, Freed<SSL_free>> ssl)
      : socket_(std::move(socket)), ssl_(std::move(ssl)) {}
  // Signals to the peer that no bytes are missing at the end, unless an error has ended the connection.
  ~TlsTransport() override {
    if (is_established() && !failed_) SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  int fd() const override { return socket_.get(); }
  bool is_established() const override { return SSL_is_init_finished(ssl_.get()) == 1; }
  Moved read(std::span<char> into) override {
    ERR_clear_error();
    return moved(SSL_read(ssl_.get(), into.data(), clamped(into.size())));
  }
  Moved write(std::string_view from) override {
    ERR_clear_error();
    return moved(SSL_write(ssl_.get(), from.data(), clamped(from.size())));
  }

 private:
  static int clamped(size_t size) { return static_cast<int>(std::min<size_t>(size, INT_MAX)); }
  Moved moved(int result) {
    if (result > 0) return {static_cast<size_t>(result)};
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ: return {0, Until::readable};
      case SSL_ERROR_WANT_WRITE: return {0, Until::writable};
      case SSL_ERROR_ZERO_RETURN: return {0, Until::closed};
      default: break;
    }
    failed_ = true;
    return {0, Until::closed};
  }

  os::Fd socket_;  // Closed after `ssl_` has been freed.
  std::unique_ptr<SSL, Freed<SSL_free>> ssl_;
  bool failed_ = false;
};

}  // namespace

namespace {

struct NamedText {
  std::string text, name;
};

Outcome<std::shared_ptr<SSL_CTX>> context_of(const NamedText& certificates, const NamedText& key) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return failure(FailureKind::unavailable, "TLS is not available: {}", reason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // A repeated write may use another address, because the conversation's queue may have grown.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  if (const auto used = use_certificates(context.get(), certificates.text, certificates.name); !used)
    return tl::unexpected(used.error());
  if (const auto used = use_key(context.get(), key.text, key.name, certificates.name); !used)
    return tl::unexpected(used.error());
  return context;
}

}  // namespace

Outcome<Identity> Identity::open(const std::string& certificate_file, const std::string& key_file) {
  const auto certificates = read_file("certificate", certificate_file);
  if (!certificates) return tl::unexpected(certificates.error());
  const auto key = read_file("key", key_file);
  if (!key) return tl::unexpected(key.error());
  auto context = context_of({*certificates, certificate_file}, {*key, key_file});
  if (!context) return tl::unexpected(context.error());
  return Identity(std::move(*context));
}

Outcome<Identity> Identity::of_texts(const std::string& certificates_pem, const std::string& key_pem,
                                     const std::string& name) {
  auto context = context_of({certificates_pem, name}, {key_pem, name});
  if (!context) return tl::unexpected(context.error());
  return Identity(std::move(*context));
}

std::unique_ptr<http::Transport> Identity::accept(os::Fd socket) const {
  std::unique_ptr<SSL, Freed<SSL_free>> ssl(SSL_new(context_.get()));
  BIO* const bio = BIO_new(socket_method());
  if (!ssl || bio == nullptr) {
    BIO_free(bio);
    return nullptr;
  }
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(socket.get())));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl.get(), bio, bio);  // Takes ownership of the BIO.
  SSL_set_accept_state(ssl.get());
  return std::make_unique<TlsTransport>(std::move(socket), std::move(ssl));
}

}  // namespace carve::tls
