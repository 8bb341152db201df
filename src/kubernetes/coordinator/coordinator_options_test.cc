#include "kubernetes/coordinator/coordinator_options.h"

#include <gmock/gmock.h>

namespace carve::kubernetes::coordinator {
namespace {

using ::testing::HasSubstr;

Outcome<Options> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "carve-coordinator");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return parse_options(static_cast<int>(arguments.size()), arguments.data(), "n1");
}

TEST(CoordinatorOptions, defaults_fit_a_pod) {
  const auto o = parse({});
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(os::text(o->extender), "127.0.0.1:9470");
  EXPECT_EQ(os::text(o->webhook), "0.0.0.0:9443");
  EXPECT_EQ(os::text(o->health), "0.0.0.0:9471");
  EXPECT_EQ(o->identity, "n1");
  EXPECT_EQ(o->lease_path(), "/apis/coordination.k8s.io/v1/namespaces/carve-system/leases/carve-scheduler");
}

TEST(CoordinatorOptions, parses_every_option) {
  const auto o =
      parse({"--apiserver=https://h:1", "--ca=/ca", "--token-file=/t", "--lease=kube-system/kube-scheduler",
             "--identity=n2", "--extender=127.0.0.1:0", "--webhook=[::]:1", "--health=127.0.0.1:2",
             "--tls-cert=/c", "--tls-key=/k", "--namespace=other", "--log-level=debug"});
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->connection.apiserver, "https://h:1");
  EXPECT_EQ(o->connection.ca_file, "/ca");
  EXPECT_EQ(o->connection.token_file, "/t");
  EXPECT_EQ(o->lease_path(), "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler");
  EXPECT_EQ(o->identity, "n2");
  EXPECT_EQ(o->name_space, "other");
  EXPECT_EQ(os::text(o->webhook), "[::]:1");
  EXPECT_EQ(o->tls_key, "/k");
  EXPECT_EQ(parse({"--kubeconfig=/k"})->connection.kubeconfig, "/k");
}

TEST(CoordinatorOptions, rejects_an_invalid_option_with_the_reason) {
  const std::pair<std::vector<std::string>, const char*> rows[] = {
      {{"--lease=carve-scheduler"}, "--lease 'carve-scheduler' is not NAMESPACE/NAME"},
      {{"--lease=a/../b"}, "is not NAMESPACE/NAME"},
      {{"--namespace=A"}, "--namespace 'A' is not a valid namespace name"},
      {{"--extender=0.0.0.0:9470"}, "--extender 0.0.0.0:9470: must be a loopback address"},
      {{"--webhook=9443"}, "'9443' is not an address and a port, such as 0.0.0.0:9443"},
      {{"--tls-cert=/c"}, "--tls-cert requires --tls-key"},
      {{"--identity=a_b"}, "--identity 'a_b' is not a host name"},
      {{"--log-level=loud"}, "loud"}};
  for (const auto& [words, message] : rows) {
    const auto o = parse(words);
    ASSERT_FALSE(o) << message;
    EXPECT_EQ(o.error().kind, FailureKind::invalid_argument);
    EXPECT_THAT(o.error().message, HasSubstr(message));
  }
}

TEST(CoordinatorOptions, help_and_completion_list_the_options) {
  EXPECT_THAT(help_text(), HasSubstr("--lease NAMESPACE/NAME"));
  EXPECT_THAT(completion_script(), HasSubstr("--kubeconfig"));
  EXPECT_EQ(parse({"--help"})->mode, Options::Mode::help);
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
