#include "tls/tls.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "http/server.h"
#include "os/socket.h"

namespace carve::tls {
namespace {

using testing::EndsWith;
using testing::StartsWith;

// A folder with two keys and a self-signed certificate of the first key, which the test creates.
struct Keys {
  std::string folder = [] {
    char name[] = "/tmp/carve-tls-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  std::string certificate = folder + "/a.crt", key = folder + "/a.key", other_key = folder + "/b.key",
              encrypted_key = folder + "/c.key", text = folder + "/text",
              broken_chain = folder + "/broken.crt";

  Keys() {
    EVP_PKEY* a = EVP_EC_gen("P-256");
    EVP_PKEY* b = EVP_EC_gen("P-256");
    X509* x509 = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, a);
    X509_NAME* name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("carve"), -1,
                               -1, 0);
    X509_set_issuer_name(x509, name);
    EXPECT_GT(X509_sign(x509, a, EVP_sha256()), 0);
    write(certificate, [&](FILE* f) { return PEM_write_X509(f, x509); });
    write(key, [&](FILE* f) { return PEM_write_PrivateKey(f, a, nullptr, nullptr, 0, nullptr, nullptr); });
    write(other_key,
          [&](FILE* f) { return PEM_write_PrivateKey(f, b, nullptr, nullptr, 0, nullptr, nullptr); });
    char secret[] = "secret";
    write(encrypted_key, [&](FILE* f) {
      return PEM_write_PrivateKey(f, a, EVP_aes_128_cbc(), nullptr, 0, nullptr, secret);
    });
    std::ofstream(text) << "no PEM\n";
    std::ofstream(broken_chain) << std::ifstream(certificate).rdbuf()
                                << "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n";
    X509_free(x509);
    EVP_PKEY_free(a);
    EVP_PKEY_free(b);
  }
  ~Keys() { std::filesystem::remove_all(folder); }

  static void write(const std::string& path, const std::function<int(FILE*)>& act) {
    FILE* file = fopen(path.c_str(), "w");
    EXPECT_EQ(act(file), 1);
    fclose(file);
  }
};

constexpr size_t file_bytes = 3'000'000;

// An HTTPS server in this thread's loop; clients run in another thread.
struct Served {
  Keys keys;
  os::Loop loop;
  std::optional<http::Server> server;
  int handled = 0;

  Served() {
    const auto identity = Identity::open(keys.certificate, keys.key);
    EXPECT_TRUE(identity) << identity.error().message;
    server.emplace(
        loop, *os::listen_at(socket_path(), SOCK_STREAM, 0600),
        http::Server::Hooks{
            .handle = [this](const http::Request& r, const http::Caller&) { return answer(r); },
            .refuse =
                [](unsigned status, const std::string& detail) {
                  return http::Response{status, "text/plain", detail};
                },
            .transport = [identity = *identity](os::Fd fd) { return identity.accept(std::move(fd)); }});
  }
  std::string socket_path() const { return keys.folder + "/s"; }

  http::Response answer(const http::Request& request) {
    ++handled;
    if (request.path == "/file") {
      os::Fd file(memfd_create("carve-test", MFD_CLOEXEC));
      EXPECT_EQ(ftruncate(file.get(), file_bytes), 0);
      return {.type = "text/plain", .content = http::FileRange{std::move(file), 0, file_bytes}};
    }
    if (request.path == "/stream")
      return {.content = http::EventStream{{{"1", "first"}}, [](http::Stream& stream) {
                                             stream.send({"2", "second"});
                                             stream.end();
                                             return nullptr;
                                           }}};
    return {200, "text/plain",
            request.method + " " + request.path + " " + std::to_string(request.body.size())};
  }

  // Runs the loop until the client, which runs in its own thread, has returned.
  void run(const std::function<void(int fd)>& client) {
    std::thread thread([&] {
      {
        const os::Fd fd = *os::connect_to(socket_path(), SOCK_STREAM);
        client(fd.get());
      }
      loop.post([&] { loop.stop(); });
    });
    loop.run();
    thread.join();
  }
};

// Sends the bytes without TLS. Returns all bytes until the server closes the connection.
std::string raw(int fd, const std::string& bytes) {
  send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  std::string out;
  char piece[4096];
  for (ssize_t n; (n = recv(fd, piece, sizeof piece, 0)) > 0;) out.append(piece, static_cast<size_t>(n));
  return out;
}

struct Answer {
  bool connected = false;
  std::string version;
  std::string text;
  bool ended_well = false;  // The server has signalled that no bytes are missing.
};

Answer ask(int fd, const std::string& request, int max_version = TLS1_3_VERSION) {
  Answer out;
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_security_level(context, 0);  // So that the client offers TLS 1.1.
  SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
  SSL_CTX_set_max_proto_version(context, max_version);
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  if (SSL_connect(ssl) == 1) {
    out.connected = true;
    out.version = SSL_get_version(ssl);
    SSL_write(ssl, request.data(), static_cast<int>(request.size()));
    char piece[4096];
    int n;
    while ((n = SSL_read(ssl, piece, sizeof piece)) > 0) out.text.append(piece, static_cast<size_t>(n));
    out.ended_well = SSL_get_error(ssl, n) == SSL_ERROR_ZERO_RETURN;
  }
  SSL_free(ssl);
  SSL_CTX_free(context);
  ERR_clear_error();
  return out;
}

TEST(Tls, transfers_requests_files_and_streams) {
  const struct {
    int version;
    const char* name;
  } versions[] = {{TLS1_3_VERSION, "TLSv1.3"}, {TLS1_2_VERSION, "TLSv1.2"}};
  for (const auto& version : versions) {
    const struct {
      std::string request, end;
      size_t min_bytes;
    } rows[] = {
        {"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nConnection: close\r\n\r\n", "\r\n\r\nGET /b 0", 100},
        {"POST /c HTTP/1.1\r\nConnection: close\r\nContent-Length: 60000\r\n\r\n" + std::string(60'000, 'x'),
         "POST /c 60000", 60},
        {"GET /file HTTP/1.1\r\nConnection: close\r\n\r\n", std::string(1000, '\0'), file_bytes},
        {"GET /stream HTTP/1.1\r\n\r\n", "id: 1\ndata: first\n\nid: 2\ndata: second\n\n", 100},
    };
    for (const auto& row : rows) {
      Served served;
      Answer answer;
      served.run([&](int fd) { answer = ask(fd, row.request, version.version); });
      EXPECT_EQ(answer.version, version.name);
      EXPECT_THAT(answer.text, StartsWith("HTTP/1.1 200 OK\r\n"));
      EXPECT_TRUE(answer.text.ends_with(row.end)) << answer.text.substr(0, 300);
      EXPECT_GE(answer.text.size(), row.min_bytes);
      EXPECT_TRUE(answer.ended_well);
    }
  }
}

TEST(Tls, rejects_versions_older_than_1_2) {
  Served served;
  Answer answer;
  served.run([&](int fd) { answer = ask(fd, "GET / HTTP/1.1\r\n\r\n", TLS1_1_VERSION); });
  EXPECT_FALSE(answer.connected);
  EXPECT_EQ(served.handled, 0);
}

TEST(Tls, bytes_that_are_not_tls_close_only_their_connection) {
  std::mt19937 dice(4);
  Served served;
  Answer after;
  served.run([&](int plain) {
    EXPECT_EQ(raw(plain, "GET / HTTP/1.1\r\nHost: carve\r\n\r\n").find("HTTP/1.1 200"), std::string::npos);
    for (int i = 0; i < 50; ++i) {
      std::string bytes(6000, '\0');
      for (char& c : bytes) c = static_cast<char>(dice());
      if (i % 2 == 0) bytes.replace(0, 5, std::string("\x16\x03\x01\x10\x00", 5));  // Resembles a handshake.
      const os::Fd fd = *os::connect_to(served.socket_path(), SOCK_STREAM);
      raw(fd.get(), bytes);
    }
    const os::Fd fd = *os::connect_to(served.socket_path(), SOCK_STREAM);
    after = ask(fd.get(), "GET /a HTTP/1.1\r\nConnection: close\r\n\r\n");
  });
  EXPECT_EQ(served.handled, 1);
  EXPECT_THAT(after.text, EndsWith("GET /a 0"));
}

TEST(Tls, a_handshake_is_limited_to_10_s_by_a_virtual_clock) {
  Served served;
  served.loop.every(os::millisecond, [&, ticks = 0]() mutable {
    served.server->tick(os::monotonic_ns() + (++ticks < 20 ? 5 : 11) * os::second);
  });
  served.run([&](int fd) { EXPECT_EQ(raw(fd, std::string("\x16\x03\x01", 3)), ""); });
  EXPECT_EQ(served.handled, 0);
}

TEST(Tls, files_that_cannot_be_used_are_rejected_with_their_names) {
  const Keys keys;
  const struct {
    std::string certificate, key, message;
  } rows[] = {
      {keys.certificate, keys.other_key,
       fmt::format("the key {} does not belong to the certificate {}", keys.other_key, keys.certificate)},
      {keys.certificate, keys.encrypted_key,
       fmt::format("the key {} is encrypted; decrypt it", keys.encrypted_key)},
      {keys.certificate, keys.folder + "/none",
       fmt::format("the key {}/none cannot be read: No such file or directory", keys.folder)},
      {keys.folder + "/none", keys.key,
       fmt::format("the certificate {}/none cannot be read: No such file", keys.folder)},
      {keys.text, keys.key, fmt::format("the file {} contains no PEM certificate", keys.text)},
      {keys.key, keys.key, fmt::format("the file {} contains no PEM certificate", keys.key)},
      {keys.certificate, keys.text, fmt::format("the file {} contains no PEM private key", keys.text)},
      {keys.certificate, keys.certificate,
       fmt::format("the file {} contains no PEM private key", keys.certificate)},
      {keys.broken_chain, keys.key,
       fmt::format("the file {} contains a certificate that is not in PEM format", keys.broken_chain)},
  };
  for (const auto& row : rows) {
    const auto identity = Identity::open(row.certificate, row.key);
    ASSERT_FALSE(identity) << row.message;
    EXPECT_THAT(identity.error().message, StartsWith(row.message));
  }
  EXPECT_TRUE(Identity::open(keys.certificate, keys.key));
}

}  // namespace
}  // namespace carve::tls
