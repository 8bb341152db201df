#include "kubernetes/coordinator/extender/messages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace carve::kubernetes::coordinator {
namespace {

using ::testing::ElementsAre;

// Go writes the field names of structs without tags as member names; the pod's own fields are tagged.
TEST(ExtenderMessages, a_request_contains_the_pods_metadata_and_node_names) {
  const auto question = read_nodes_question(
      R"({"Pod":{"metadata":{"name":"p","namespace":"a","uid":"u","annotations":{"carve.dev/request":"{}"},)"
      R"("managedFields":[{"uid":"no"}]},"spec":{"containers":[{"name":"c"}]}},"Nodes":null,)"
      R"("NodeNames":["n1","n2"]})");
  ASSERT_TRUE(question) << question.error();
  EXPECT_EQ(question->pod.name, "p");
  EXPECT_EQ(question->pod.name_space, "a");
  EXPECT_EQ(question->pod.uid, "u");
  EXPECT_EQ(question->pod.annotations.at("carve.dev/request"), "{}");
  EXPECT_THAT(question->nodes, ElementsAre("n1", "n2"));
  EXPECT_THAT(read_nodes_question(R"({"pod":{"metadata":{"uid":"u"}},"nodenames":["n1"]})")->nodes,
              ElementsAre("n1"));
}

// Names are copied into the response as they were read, so names with JSON escapes are rejected.
TEST(ExtenderMessages, rejects_characters_that_node_names_cannot_have) {
  for (const char* name : {"a\\u0062", "a\\\"b", "a b", "a\nb", "a\x7f", "\xc3\xa4"})
    EXPECT_FALSE(read_nodes_question(
        fmt::format(R"({{"Pod":{{"metadata":{{"uid":"u"}}}},"NodeNames":["{}"]}})", name)))
        << name;
}

TEST(ExtenderMessages, unused_members_may_have_any_value_and_order) {
  for (const char* other : {"null", "-1.5e3", "true", R"("]}\"{[\\")", R"({"a":[{"b":"}"},[]]})", "[ ]"}) {
    const std::string json = fmt::format(
        R"( {{"Nodes" : {0} , "NodeNames":[ "n1" , "n2" ],"Pod":{{"spec":{0},"metadata":{{"uid":"u"}} }} }} )",
        other);
    const auto question = read_nodes_question(json);
    ASSERT_TRUE(question) << other << ": " << question.error();
    EXPECT_EQ(question->pod.uid, "u");
    EXPECT_THAT(question->nodes, ElementsAre("n1", "n2"));
  }
}

TEST(ExtenderMessages, rejects_a_truncated_request) {
  const std::string whole =
      R"({"Pod":{"metadata":{"uid":"u"},"spec":{"a":["\""]}},"Nodes":null,"NodeNames":["n1","n2"]})";
  ASSERT_TRUE(read_nodes_question(whole));
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(read_nodes_question(whole.substr(0, length))) << length;
  for (const char* behind : {"}", ",", "x", "{}"})
    EXPECT_FALSE(read_nodes_question(whole + behind)) << behind;
}

TEST(ExtenderMessages, a_bind_request_contains_the_pod_and_the_node) {
  const auto question = read_bind_question(R"({"PodName":"p","PodNamespace":"a","PodUID":"u","Node":"n1"})");
  ASSERT_TRUE(question) << question.error();
  EXPECT_EQ(question->pod, "p");
  EXPECT_EQ(question->name_space, "a");
  EXPECT_EQ(question->uid, "u");
  EXPECT_EQ(question->node, "n1");
}

TEST(ExtenderMessages, a_preemption_request_contains_the_victims_by_node) {
  const auto question = read_preempt_question(
      R"({"Pod":{"metadata":{"name":"p","uid":"u"}},"NodeNameToVictims":null,"NodeNameToMetaVictims":)"
      R"({"n1":{"Pods":[{"UID":"a"},{"UID":"b"}],"NumPDBViolations":1},"n2":{"Pods":null,"NumPDBViolations":0}}})");
  ASSERT_TRUE(question) << question.error();
  EXPECT_EQ(question->pod.uid, "u");
  EXPECT_THAT(question->nodes.at("n1").uids, ElementsAre("a", "b"));
  EXPECT_TRUE(question->nodes.at("n2").uids.empty());
  EXPECT_EQ(preempt_answer(question->nodes),
            R"({"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"a"},{"UID":"b"}],"NumPDBViolations":1},)"
            R"("n2":{"Pods":[],"NumPDBViolations":0}}})");
  EXPECT_EQ(preempt_answer({}), R"({"NodeNameToMetaVictims":{}})");
  for (const char* text : {"", "{}", "[]", R"({"NodeNameToMetaVictims":{"n1":{}}})"})
    EXPECT_FALSE(read_preempt_question(text)) << text;
}

TEST(ExtenderMessages, rejects_invalid_requests) {
  for (const char* text :
       {"", "{", "[]", "null", "{}", R"({"Pod":{"metadata":{"name":"p"}}})", R"({"Pod":"u"})",
        R"({"Pod":{"metadata":{"uid":"u"}},"NodeNames":[1]})", R"({"Pod":{"metadata":{"uid":"u"}},"Nodes":})",
        R"({"Pod":{"metadata":{"uid":u}}})"})
    EXPECT_FALSE(read_nodes_question(text)) << text;
  for (const char* text : {"", "{}", R"({"PodName":"p","PodNamespace":"a","PodUID":"u"})", R"(["p"])"})
    EXPECT_FALSE(read_bind_question(text)) << text;
  EXPECT_FALSE(read_nodes_question(std::string(100'000, '[')));
}

TEST(ExtenderMessages, responses_use_the_names_that_the_scheduler_reads) {
  const std::vector<std::string_view> names = {"n1", "n2", "n3"}, refusals = {"", "memory", ""};
  EXPECT_EQ(
      filter_answer(names, refusals, {}),
      R"({"NodeNames":["n1","n3"],"FailedNodes":{},"FailedAndUnresolvableNodes":{"n2":"carve: memory"},)"
      R"("Error":""})");
  const std::vector<std::string_view> all_refused = {"memory", "too small", "memory"};
  EXPECT_EQ(filter_answer(names, all_refused, std::vector<size_t>{0, 2}),
            R"({"NodeNames":[],"FailedNodes":{"n1":"carve: memory","n3":"carve: memory"},)"
            R"("FailedAndUnresolvableNodes":{"n2":"carve: too small"},"Error":""})");
  EXPECT_EQ(filter_error("it is \"odd\""), R"({"NodeNames":[],"Error":"carve: it is \"odd\""})");
  EXPECT_EQ(prioritize_answer(std::span(names).first(2), std::vector<uint8_t>{10, 0}),
            R"([{"Host":"n1","Score":10},{"Host":"n2","Score":0}])");
  EXPECT_EQ(bind_answer(""), R"({"Error":""})");
  EXPECT_EQ(bind_answer("no"), R"({"Error":"carve: no"})");
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
