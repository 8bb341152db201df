#include "controller/controller_options.h"

#include <gmock/gmock.h>

#include <sstream>

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Outcome<Options> parse(std::vector<std::string> words, const Surroundings& s) {
  words.insert(words.begin(), "carve-controller");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return parse_options(static_cast<int>(arguments.size()), arguments.data(), s);
}

const Surroundings root{.uid = 0,
                        .home = "/root",
                        .working_directory = "/here",
                        .host_name = "Node-7.example.org",
                        .agent_socket = "/run/carve/carved.sock",
                        .controller_socket = "/run/carve/controller.sock"};
const Surroundings user{.uid = 1000,
                        .home = "/home/u",
                        .working_directory = "/here",
                        .host_name = "n1",
                        .agent_socket = "x/carved.sock",
                        .controller_socket = "x/controller.sock"};

TEST(ControllerOptions, use_this_machines_node_by_default) {
  const auto o = parse({}, root);
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_THAT(o->nodes, ElementsAre(NodeAddress{"node-7", "/run/carve/carved.sock"}));
  EXPECT_EQ(o->state, "/var/lib/carve-controller");
  EXPECT_EQ(o->socket, "/run/carve/controller.sock");
  EXPECT_EQ(os::text(*o->listen), "127.0.0.1:8470");
  EXPECT_FALSE(o->listen_requested);
  EXPECT_THAT(parse({}, user)->nodes, ElementsAre(NodeAddress{"n1", "/here/x/carved.sock"}));
  EXPECT_EQ(parse({}, user)->state, "/home/u/.local/state/carve-controller");
  EXPECT_EQ(parse({}, user)->socket, "/here/x/controller.sock");
  Surroundings moved = user;
  moved.xdg_state_home = "/st";
  EXPECT_EQ(parse({}, moved)->state, "/st/carve-controller");
}

TEST(ControllerOptions, require_times_with_a_valid_unit_within_the_limit) {
  EXPECT_EQ(parse({}, user)->orphan_grace_s, 60);
  const auto o = parse({"--orphan-grace", "5s", "--expected-start", "300"}, user);
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->orphan_grace_s, 5);
  EXPECT_EQ(o->expected_start_s, 300);
  for (const char* wrong : {"s", "-1s", "5m", "86401s"}) {
    const auto refused = parse({"--orphan-grace", wrong}, user);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().message,
              fmt::format("--orphan-grace '{}' is not a time from 0s to 86400s", wrong));
  }
}

TEST(ControllerOptions, of_a_cluster_replace_this_machines_node) {
  const auto o =
      parse({"--kubernetes-nodes", "k.conf", "--usage-interval", "5m", "--usage-account", "a/b"}, user);
  EXPECT_FALSE(o) << "not a time";
  const auto cluster =
      parse({"--kubernetes-nodes", "k.conf", "--usage-interval", "300s", "--usage-account", "a/b"}, user);
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_THAT(cluster->nodes, testing::IsEmpty());
  EXPECT_EQ(cluster->kubernetes_nodes, "/here/k.conf");
  EXPECT_EQ(cluster->usage_interval_s, 300);
  EXPECT_EQ(cluster->usage_account.name_space, "a");
  EXPECT_EQ(cluster->usage_account.name, "b");
  EXPECT_EQ(parse({"--kubernetes-nodes", "pod"}, user)->kubernetes_nodes, "pod");
  EXPECT_THAT(parse({"--kubernetes-nodes", "pod", "--node", "n=/s"}, user)->nodes, testing::SizeIs(1));
  for (const char* wrong : {"0s", "3601s"})
    EXPECT_EQ(parse({"--usage-interval", wrong}, user).error().message,
              fmt::format("--usage-interval '{}' must be from 1s to 3600s", wrong));
  for (const char* wrong : {"a", "/b", "a/", "a/b/c", "A/b", "a/../b"})
    EXPECT_THAT(parse({"--usage-account", wrong}, user).error().message,
                testing::HasSubstr("must be NAMESPACE/NAME"));
}

TEST(ControllerOptions, keep_the_nodes_in_their_order) {
  const auto o = parse(
      {"--node", "b=/x/b", "--node=a=y=z", "--state", "s", "--socket", "c", "--listen", "[::1]:0"}, user);
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_THAT(o->nodes, ElementsAre(NodeAddress{"b", "/x/b"}, NodeAddress{"a", "/here/y=z"}));
  EXPECT_EQ(o->state, "/here/s");
  EXPECT_EQ(o->socket, "/here/c");
  EXPECT_EQ(os::text(*o->listen), "[::1]:0");
  EXPECT_TRUE(o->listen_requested);
}

TEST(ControllerOptions, require_a_certificate_and_key_for_an_address_other_than_loopback) {
  const auto o = parse({"--listen", "0.0.0.0:8470", "--tls-cert", "c.pem", "--tls-key", "/k.pem", "--host",
                        "gpu.example", "--host", "10.0.0.5", "--account-quota", "50%"},
                       user);
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->tls_certificate, "/here/c.pem");
  EXPECT_EQ(o->tls_key, "/k.pem");
  EXPECT_THAT(o->hosts, ElementsAre("gpu.example", "10.0.0.5"));
  EXPECT_EQ(o->account_quota_percent, 50u);
}

TEST(ControllerOptions, are_rejected_with_one_line_that_has_the_option_the_value_and_a_suggestion) {
  const std::string long_path = "/" + std::string(107, 'x'), long_name(49, 'n');
  const struct {
    std::vector<std::string> words;
    const char* message;
  } rows[] = {
      {{"--nonsense"}, "unknown option --nonsense; carve-controller --help lists the options"},
      {{"--node"}, "--node needs a value; carve-controller --help explains it"},
      {{"--node", "a"}, "--node 'a' must be NAME=SOCKET, such as a=/run/carve/carved.sock"},
      {{"--node", "a="}, "--node 'a=' must be NAME=SOCKET"},
      {{"--node", "=/x"},
       "--node '=/x': '' is not a valid node name; use 1 to 48 characters from a-z, 0-9 and -"},
      {{"--node", "A=/x"}, "'A' is not a valid node name"},
      {{"--node", "a.b=/x"}, "'a.b' is not a valid node name"},
      {{"--node", "-a=/x"}, "'-a' is not a valid node name"},
      {{"--node", "a-=/x"}, "'a-' is not a valid node name"},
      {{"--node", long_name + "=/x"}, "is not a valid node name"},
      {{"--node", "a=/x\ny"}, "--node 'a=/x?y' has a control character"},
      {{"--node", "a=/x", "--node", "a=/y"},
       "--node 'a=/y': node a already has the socket /x; use a different name for each node"},
      {{"--node", "a=/x", "--node", "a=/x"}, "node a already has the socket /x"},
      {{"--node", "a=/here/x", "--node", "b=x"}, "--node b=/here/x: node a already has this socket"},
      {{"--node", "a=" + long_path}, "the path has 108 bytes, and a unix socket's path has at most 107"},
      {{"--socket", long_path}, "the path has 108 bytes, and a unix socket's path has at most 107"},
      {{"--node", "a=/x", "--socket", "/x"}, "--socket /x: this is the socket of the agent of node a"},
      {{"--listen", "8470"}, "--listen '8470' must be an address and a port, such as 127.0.0.1:8470"},
      {{"--listen", "localhost:8470"}, "must be an address and a port"},
      {{"--listen", "0.0.0.0:8470"},
       "--listen 0.0.0.0:8470: an address other than loopback needs --tls-cert FILE and --tls-key FILE"},
      {{"--listen", "[::]:80"}, "use 127.0.0.1:80"},
      {{"--listen", "127.0.0.1:0", "--tls-cert", "c"}, "--tls-cert requires --tls-key"},
      {{"--listen", "127.0.0.1:0", "--tls-key", "k"}, "--tls-key requires --tls-cert"},
      {{"--listen", "none", "--tls-cert", "c", "--tls-key", "k"},
       "--tls-cert cannot be used with --listen none"},
      {{"--host", "a:80"}, "--host 'a:80' must be a host name"},
      {{"--account-quota", "0"}, "--account-quota '0' must be from 1% to 100%"},
      {{"--account-quota", "half"}, "--account-quota 'half' must be from 1% to 100%"},
      {{"--log-level", "loud"}, "--log-level 'loud' is not a level; use error, warning, info or debug"},
      {{"--state", "a", "--state", "b"}, "--state 'b': --state is already set to 'a'; give it only once"},
  };
  for (const auto& row : rows) {
    const auto o = parse(row.words, user);
    ASSERT_FALSE(o) << row.message;
    EXPECT_THAT(o.error().message, HasSubstr(row.message));
    EXPECT_THAT(o.error().message, Not(HasSubstr("\n")));
    EXPECT_LE(o.error().message.size(), 300u);
    EXPECT_EQ(o.error().kind, FailureKind::invalid_argument);
  }
}

TEST(ControllerOptions, require_a_node_if_the_host_has_no_usable_name) {
  for (const char* host : {"", "n_1", ".x", "-"}) {
    Surroundings odd = root;
    odd.host_name = host;
    const auto o = parse({}, odd);
    ASSERT_FALSE(o) << host;
    EXPECT_THAT(o.error().message, HasSubstr("--node NAME=/run/carve/carved.sock"));
    EXPECT_TRUE(parse({"--node", "a=/x"}, odd));
  }
}

TEST(ControllerOptions, limit_the_number_of_nodes_as_the_help_states) {
  std::vector<std::string> words;
  for (size_t i = 0; i < max_nodes; ++i) words.push_back(fmt::format("--node=n{}=/x{}", i, i));
  EXPECT_TRUE(parse(words, user));
  words.emplace_back("--node=more=/more");
  ASSERT_FALSE(parse(words, user));
  EXPECT_THAT(parse(words, user).error().message, HasSubstr(fmt::format("at most {} nodes", max_nodes)));
  EXPECT_THAT(help_text(), HasSubstr(fmt::format("at most {}", max_nodes)));
}

TEST(ControllerOptions, of_a_cluster_exclude_nodes) {
  const auto o = parse({"--kubernetes", "--kubeconfig", "config"}, user);
  ASSERT_TRUE(o);
  EXPECT_TRUE(o->kubernetes);
  EXPECT_EQ(o->nodes.size(), 0u);
  EXPECT_EQ(o->kubeconfig, "/here/config");
  EXPECT_THAT(parse({"--kubernetes", "--node", "a=/x"}, user).error().message,
              HasSubstr("--node cannot be used with --kubernetes"));
  EXPECT_THAT(parse({"--kubeconfig", "config"}, user).error().message,
              HasSubstr("--kubeconfig requires --kubernetes"));
}

TEST(ControllerOptions, that_print_a_text_take_precedence) {
  EXPECT_EQ(parse({"--state", "s", "-h", "--nonsense"}, user)->mode, Options::Mode::help);
  EXPECT_EQ(parse({"--version", "--node", "x"}, user)->mode, Options::Mode::version);
  EXPECT_EQ(parse({"--completion", "bash"}, user)->mode, Options::Mode::completion);
}

TEST(ControllerOptions, are_listed_in_the_help_and_in_the_completion) {
  for (const auto& row : option_rows) {
    EXPECT_THAT(help_text(), HasSubstr(row.name));
    EXPECT_THAT(completion_script(), HasSubstr(fmt::format("{} ", row.name)));
    for (const std::string_view word : row.words)
      EXPECT_TRUE(parse({row.name, std::string(word)}, user)) << row.name << " " << word;
  }
  EXPECT_THAT(completion_script(), HasSubstr("complete -o default -F _carve_controller carve-controller"));
  std::istringstream lines(help_text());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

}  // namespace
}  // namespace carve::controller
