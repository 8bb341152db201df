#include "core/holder.h"

#include <gmock/gmock.h>

namespace carve {
namespace {

using testing::HasSubstr;

Holder pod() { return {.pod = PodContainer{"a", "web-0.x", "0b6c0e4e-1d2f", "main"}, .claim = {}}; }

TEST(Holder, is_a_container_of_a_pod_or_a_claim) {
  EXPECT_TRUE(check(pod()));
  EXPECT_TRUE(check(Holder{.pod = {}, .claim = "0b6c0e4e-1d2f"}));
  EXPECT_FALSE(check(Holder{}));
  Holder both = pod();
  both.claim = "u";
  EXPECT_FALSE(check(both));
  EXPECT_FALSE(Holder{});
  EXPECT_TRUE(pod());
}

TEST(Holder, is_rejected_with_the_field_of_each_invalid_name) {
  const struct {
    const char* says;
    void (*spoil)(PodContainer&);
  } rows[] = {
      {"holder.pod.namespace: 'A'", [](PodContainer& p) { p.namespace_ = "A"; }},
      {"holder.pod.namespace: 'a.b'", [](PodContainer& p) { p.namespace_ = "a.b"; }},
      {"holder.pod.namespace", [](PodContainer& p) { p.namespace_.assign(64, 'a'); }},
      {"holder.pod.name: ''", [](PodContainer& p) { p.name = ""; }},
      {"holder.pod.name: '../x'", [](PodContainer& p) { p.name = "../x"; }},
      {"holder.pod.name", [](PodContainer& p) { p.name.assign(254, 'a'); }},
      {"holder.pod.container: 'c/'", [](PodContainer& p) { p.container = "c/"; }},
      {"holder.pod.uid: ''", [](PodContainer& p) { p.uid = ""; }},
      {"holder.pod.uid: '/'", [](PodContainer& p) { p.uid = "/"; }},
      {"holder.pod.uid: 'a_b'", [](PodContainer& p) { p.uid = "a_b"; }},
      {"holder.pod.uid", [](PodContainer& p) { p.uid.assign(64, 'a'); }},
  };
  for (const auto& row : rows) {
    Holder holder = pod();
    row.spoil(*holder.pod);
    const auto checked = check(holder);
    ASSERT_FALSE(checked) << row.says;
    EXPECT_THAT(checked.error().message, HasSubstr(row.says));
  }
  EXPECT_FALSE(check(Holder{.pod = {}, .claim = "a b"}));
  Holder longest = pod();
  longest.pod->name.assign(253, 'a');
  longest.pod->namespace_.assign(63, 'a');
  EXPECT_TRUE(check(longest));
}

TEST(Holder, is_identified_by_uid_and_container) {
  Holder renamed = pod();
  renamed.pod->name = "other";
  EXPECT_TRUE(is_same(pod(), renamed));
  Holder recreated = pod();
  recreated.pod->uid = "another";
  EXPECT_FALSE(is_same(pod(), recreated));
  Holder sidecar = pod();
  sidecar.pod->container = "log";
  EXPECT_FALSE(is_same(pod(), sidecar));
  EXPECT_TRUE(is_same({.pod = {}, .claim = "u"}, {.pod = {}, .claim = "u"}));
  EXPECT_FALSE(is_same({.pod = {}, .claim = "u"}, {.pod = {}, .claim = "v"}));
  EXPECT_FALSE(is_same(Holder{}, Holder{}));
  EXPECT_FALSE(is_same(pod(), Holder{}));
}

TEST(Holder, is_printed_with_its_names) {
  EXPECT_EQ(text(pod()), "pod a/web-0.x, container main");
  EXPECT_EQ(text(Holder{.pod = {}, .claim = "u"}), "claim u");
  EXPECT_EQ(text(Holder{}), "");
}

}  // namespace
}  // namespace carve
