#include "kubernetes/node/kubelet_options.h"

#include <gmock/gmock.h>

#include <vector>

namespace carve::kubernetes::node {
namespace {

using testing::HasSubstr;

Outcome<Options> parse(std::vector<std::string> words, const std::string& node_name = "n1") {
  words.insert(words.begin(), "carve-kubelet");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return parse_options(static_cast<int>(words.size()), pointers.data(), node_name);
}

TEST(KubeletOptions, paths_follow_kubelets_directory) {
  const auto plain = parse({});
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->node, "n1");
  EXPECT_EQ(plain->plugin_dir, "/var/lib/kubelet/device-plugins");
  const auto moved = parse({"--kubelet-dir", "/k", "--plugin-dir", "/p", "--node-name", "n2.example"});
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(moved->node, "n2.example");
  EXPECT_EQ(moved->plugin_dir, "/p");
  EXPECT_EQ(moved->pod_resources, "/k/pod-resources/kubelet.sock");
}

TEST(KubeletOptions, a_node_name_is_required) {
  for (const char* name : {"N1", "a/b", "a b", "n_1"})
    EXPECT_THAT(parse({"--node-name", name}, "").error().message, HasSubstr("is not a valid node name"))
        << name;
  EXPECT_THAT(parse({}, "").error().message, HasSubstr("or set NODE_NAME"));
  EXPECT_FALSE(parse({"--node-name", std::string(254, 'a')}));
  EXPECT_THAT(parse({"--log-level", "loud"}).error().message, HasSubstr("loud"));
  EXPECT_EQ(parse({"--help"}, "")->mode, Options::Mode::help);
}

TEST(KubeletOptions, the_metrics_port_has_an_address_or_is_off) {
  EXPECT_EQ(os::text(*parse({})->metrics), "0.0.0.0:9472");
  EXPECT_EQ(os::text(*parse({"--metrics", "127.0.0.1:0"})->metrics), "127.0.0.1:0");
  EXPECT_FALSE(parse({"--metrics", "off"})->metrics);
  for (const char* value : {"9472", "localhost:9472", "on"})
    EXPECT_THAT(parse({"--metrics", value}).error().message, HasSubstr("such as 0.0.0.0:9472, or off"))
        << value;
  EXPECT_THAT(parse({"--tls-cert", "c"}).error().message, HasSubstr("--tls-cert requires --tls-key"));
}

}  // namespace
}  // namespace carve::kubernetes::node
