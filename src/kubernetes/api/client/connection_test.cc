#include "kubernetes/api/client/connection.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

namespace carve::kubernetes {
namespace {

using testing::HasSubstr;

// A machine that has only these files and environment variables.
struct Machine {
  std::map<std::string, std::string> files, variables;

  ConnectionSources sources() const {
    return {.environment =
                [this](const char* name) {
                  const auto found = variables.find(name);
                  return found != variables.end() ? found->second : std::string();
                },
            .read_file = [this](const std::string& path) -> Outcome<std::string> {
              const auto found = files.find(path);
              if (found == files.end())
                return failure(FailureKind::not_found, "the file {} cannot be read", path);
              return found->second;
            }};
  }
};

constexpr const char* ca = "-----BEGIN CERTIFICATE-----\nY2E=\n-----END CERTIFICATE-----\n";
constexpr const char* key = "-----BEGIN EC PRIVATE KEY-----\na2V5\n-----END EC PRIVATE KEY-----\n";
// The base64 of the two texts above.
constexpr const char* ca_base64 =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tClkyRT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";
constexpr const char* key_base64 =
    "LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0tCmEyVjUKLS0tLS1FTkQgRUMgUFJJVkFURSBLRVktLS0tLQo=";

std::string config(const std::string& cluster, const std::string& user) {
  return fmt::format(R"(apiVersion: v1
kind: Config
current-context: here
contexts:
- name: other
  context: {{cluster: none, user: none}}
- name: here
  context: {{cluster: c, user: u, namespace: team-a}}
clusters:
- name: c
  cluster: {{{}}}
users:
- name: u
  user: {{{}}}
)",
                     cluster, user);
}

Outcome<Connection> read(const std::string& text, const Machine& machine = {}) {
  return read_kubeconfig(text, "/home/a/config", machine.sources());
}

TEST(Connection, reads_certificates_and_keys_embedded_in_a_kubeconfig) {
  const auto read_one =
      read(config(fmt::format("server: 'https://10.0.0.1:6443/', certificate-authority-data: {}", ca_base64),
                  fmt::format("client-certificate-data: {}, client-key-data: {}", ca_base64, key_base64)));
  ASSERT_TRUE(read_one) << read_one.error().message;
  EXPECT_EQ(read_one->server, "https://10.0.0.1:6443");
  EXPECT_EQ(read_one->ca_pem, ca);
  EXPECT_EQ(read_one->certificate_pem, ca);
  EXPECT_EQ(read_one->key_pem, key);
  EXPECT_EQ(read_one->name_space, "team-a");
  EXPECT_EQ(read_one->token, "");
}

TEST(Connection, resolves_paths_against_the_kubeconfigs_folder) {
  const Machine machine{.files = {{"/home/a/pki/ca.crt", ca}, {"/run/token", "abc\n"}}, .variables = {}};
  const auto read_one = read(
      config("server: 'https://k:1', certificate-authority: pki/ca.crt", "token: old, tokenFile: /run/token"),
      machine);
  ASSERT_TRUE(read_one) << read_one.error().message;
  EXPECT_EQ(read_one->ca_pem, ca);
  EXPECT_EQ(read_one->token_file, "/run/token");
  EXPECT_EQ(read_one->token, "") << "the file takes precedence over the text";
}

TEST(Connection, reads_a_kubeconfig_in_json) {
  const auto read_one =
      read(R"({"current-context":"x","contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],)"
           R"("clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:8001"}}],)"
           R"("users":[{"name":"u","user":{"token":"abc"}}]})");
  ASSERT_TRUE(read_one) << read_one.error().message;
  EXPECT_EQ(read_one->token, "abc");
  EXPECT_EQ(read_one->name_space, "default");
}

TEST(Connection, reads_a_kubeconfig_in_yaml_on_one_line) {
  const auto read_one = read(
      "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], "
      "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:8001'}}], users: [{name: u, user: {token: "
      "abc}}]}");
  ASSERT_TRUE(read_one) << read_one.error().message;
  EXPECT_EQ(read_one->token, "abc");
}

TEST(Connection, a_rejection_includes_the_fix) {
  const std::string server = "server: 'https://k:1'";
  const struct {
    std::string cluster, user, message;
  } rows[] = {
      {server, "exec: {apiVersion: v1, command: aws}",
       "user 'u' has exec, but credential plugins are not supported; use a token or a client certificate, or "
       "use --apiserver URL --ca FILE --token-file FILE"},
      {server, "auth-provider: {name: gcp}",
       "user 'u' has auth-provider, but credential plugins are not supported"},
      {server + ", insecure-skip-tls-verify: true", "",
       "cluster 'c' has insecure-skip-tls-verify, which would send the token to any server; set "
       "certificate-authority to the server's CA instead"},
      {server + ", proxy-url: 'http://p:1'", "", "cluster 'c' has proxy-url, which is not supported"},
      {server + ", tls-server-name: k", "", "cluster 'c' has tls-server-name, which is not supported"},
      {server, "username: a, password: b", "user 'u' has username"},
      {server, "as: root", "user 'u' has as, which is not supported"},
      {server, "token: 'a b'", "user 'u': the token contains invalid characters"},
      {server, "tokenFile: none", "the file /home/a/none cannot be read"},
      {server, "client-certificate-data: " + std::string(ca_base64),
       "user 'u' needs both client-certificate and client-key"},
      {server + ", certificate-authority-data: '!!'", "",
       "cluster 'c': certificate-authority-data is not base64"},
      {server + ", certificate-authority-data: YQ==", "",
       "cluster 'c': certificate-authority: there is no CERTIFICATE in PEM format"},
      {"server: 'http://10.0.0.1:80'", "",
       "server: http://10.0.0.1:80 would send the token unencrypted; write https://"},
      {"server: 'http://127.example.org:80'", "", "would send the token unencrypted"},
      {"server: 'https://'", "", "'https:' is not https://HOST:PORT"},
      {"server: 'https://a@b:1'", "", "'https://a@b:1' is not https://HOST:PORT"},
      {"", "", "is not https://HOST:PORT"},
  };
  for (const auto& row : rows) {
    const auto read_one = read(config(row.cluster, row.user));
    ASSERT_FALSE(read_one) << row.message;
    EXPECT_THAT(read_one.error().message, HasSubstr(row.message));
  }
  EXPECT_TRUE(read(config(server + ", insecure-skip-tls-verify: false", "")));
}

TEST(Connection, missing_parts_are_reported) {
  EXPECT_THAT(read("kind: Config").error().message, HasSubstr("current-context is missing"));
  EXPECT_THAT(read("current-context: a").error().message, HasSubstr("there is no context 'a'"));
  EXPECT_THAT(read("current-context: a\ncontexts: [{name: a, context: {cluster: c}}]").error().message,
              HasSubstr("there is no cluster 'c'"));
  EXPECT_THAT(read("a: 1\n---\nb: 2").error().message,
              HasSubstr("2 documents; a kubeconfig must have exactly one"));
}

TEST(Connection, uses_the_service_account_inside_a_pod) {
  const std::string folder = service_account_folder;
  Machine machine{
      .files = {{folder + "/token", "t0\n"}, {folder + "/ca.crt", ca}, {folder + "/namespace", "n"}},
      .variables = {{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}}};
  const auto found = find_connection({}, machine.sources());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->server, "https://[fd00::1]:443");
  EXPECT_EQ(found->token_file, folder + "/token");
  EXPECT_EQ(found->ca_pem, ca);
  EXPECT_EQ(found->name_space, "n");
  machine.variables.clear();
  EXPECT_THAT(find_connection({}, machine.sources()).error().message,
              HasSubstr("not running in a pod; use --kubeconfig FILE, or use --apiserver URL"));
}

TEST(Connection, is_built_from_options) {
  const Machine machine{.files = {{"/ca", ca}, {"/t", "abc"}, {"/bad", "a\x01"}, {"/k", config("", "")}},
                        .variables = {}};
  const auto found =
      find_connection({.kubeconfig = "", .apiserver = "https://k:1", .ca_file = "/ca", .token_file = "/t"},
                      machine.sources());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->server, "https://k:1");
  const struct {
    ConnectionOptions options;
    const char* message;
  } rows[] = {
      {{.kubeconfig = "/k", .apiserver = "https://k:1", .ca_file = "", .token_file = ""},
       "--apiserver and --kubeconfig are mutually exclusive"},
      {{.kubeconfig = "", .apiserver = "", .ca_file = "/ca", .token_file = ""},
       "--ca and --token-file require --apiserver URL"},
      {{.kubeconfig = "", .apiserver = "https://k:1", .ca_file = "/t", .token_file = ""},
       "--ca /t: there is no CERTIFICATE in PEM format"},
      {{.kubeconfig = "", .apiserver = "https://k:1", .ca_file = "", .token_file = "/bad"},
       "the token in /bad is too long or contains invalid characters"},
      {{.kubeconfig = "/none", .apiserver = "", .ca_file = "", .token_file = ""},
       "the file /none cannot be read"},
  };
  for (const auto& row : rows)
    EXPECT_THAT(find_connection(row.options, machine.sources()).error().message, HasSubstr(row.message));
}

TEST(Connection, reads_or_rejects_random_bytes_with_the_files_name) {
  std::mt19937 dice(7);
  const std::string good =
      config(fmt::format("server: 'https://k:1', certificate-authority-data: {}", ca_base64), "token: abc");
  size_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = good;
    for (unsigned changes = 1 + dice() % 4; changes > 0; --changes) {
      const size_t at = dice() % bytes.size();
      if (dice() % 3 == 0)
        bytes.erase(at, 1 + dice() % 20);
      else
        bytes[at] = static_cast<char>(dice());
    }
    const auto read_one = read(bytes);
    if (read_one) {
      EXPECT_THAT(read_one->server, HasSubstr("://"));
      continue;
    }
    ++refused;
    EXPECT_FALSE(read_one.error().message.empty());
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_FALSE(read(std::string(2 << 20, 'a')));
}

}  // namespace
}  // namespace carve::kubernetes
