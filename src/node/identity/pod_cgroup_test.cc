#include "node/identity/pod_cgroup.h"

#include <gmock/gmock.h>

#include <random>

namespace carve::node {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* uid = "0b6c0e4e-1d2f-4b55-9d53-8f1f6a3f2f10";

TEST(PodCgroup, is_found_by_the_pods_uid_in_front_of_the_container) {
  const struct {
    const char* path;
    const char* container;
  } rows[] = {
      {"/kubepods/pod0b6c0e4e-1d2f-4b55-9d53-8f1f6a3f2f10/c1",
       "/kubepods/pod0b6c0e4e-1d2f-4b55-9d53-8f1f6a3f2f10/c1"},
      {"/kubepods/burstable/pod0b6c0e4e-1d2f-4b55-9d53-8f1f6a3f2f10/c1/sub/deeper",
       "/kubepods/burstable/pod0b6c0e4e-1d2f-4b55-9d53-8f1f6a3f2f10/c1"},
      {"/kubepods.slice/kubepods-burstable.slice/"
       "kubepods-burstable-pod0b6c0e4e_1d2f_4b55_9d53_8f1f6a3f2f10.slice/cri-containerd-ab.scope",
       "/kubepods.slice/kubepods-burstable.slice/"
       "kubepods-burstable-pod0b6c0e4e_1d2f_4b55_9d53_8f1f6a3f2f10.slice/cri-containerd-ab.scope"},
      {"/kubelet.slice/kubelet-kubepods.slice/"
       "kubelet-kubepods-pod0b6c0e4e_1d2f_4b55_9d53_8f1f6a3f2f10.slice/crio-1.scope/x",
       "/kubelet.slice/kubelet-kubepods.slice/"
       "kubelet-kubepods-pod0b6c0e4e_1d2f_4b55_9d53_8f1f6a3f2f10.slice/crio-1.scope"},
      {"/../../kubepods/pod0b6c0e4e-1d2f-4b55-9d53-8f1f6a3f2f10",
       "/../../kubepods/pod0b6c0e4e-1d2f-4b55-9d53-8f1f6a3f2f10"},
  };
  for (const auto& row : rows) {
    const PodOfProcess pod = pod_of({{"", row.path}, {"cpu", "/"}});
    EXPECT_THAT(pod.uids, ElementsAre(uid)) << row.path;
    EXPECT_EQ(pod.container, (Cgroups{{"", row.container}})) << row.path;
  }
}

TEST(PodCgroup, is_not_found_in_other_paths) {
  for (const char* path :
       {"", "/", "/user.slice/pod1", "/podman/pod0b6c", "/kubepods", "/kubepods/burstable", "/kubepods/pod",
        "/kubepods/podA B", "/kubepods/pod../x", "/system.slice/my-pod1.slice"})
    EXPECT_THAT(pod_of({{"", path}}).uids, IsEmpty()) << path;
  EXPECT_THAT(pod_of({}).uids, IsEmpty());
}

// A process may create cgroups with any name below its own.
TEST(PodCgroup, is_the_outermost_one) {
  const PodOfProcess pod = pod_of({{"", "/kubepods/podmine/c1/kubepods/podyours/c2"}});
  EXPECT_THAT(pod.uids, ElementsAre("mine"));
  EXPECT_EQ(pod.container.at(""), "/kubepods/podmine/c1");
}

TEST(PodCgroup, yields_two_pods_if_lines_contradict_each_other) {
  EXPECT_THAT(pod_of({{"memory", "/kubepods/poda/c"}, {"cpu", "/kubepods/podb/c"}}).uids,
              ElementsAre("a", "b"));
}

TEST(PodCgroup, accepts_any_path) {
  std::mt19937 random(5);
  const std::string alphabet = "/kubepods-_.slice0\n\xff";
  for (int i = 0; i < 20'000; ++i) {
    std::string path;
    for (unsigned n = random() % 60; n > 0; --n) path += alphabet[random() % alphabet.size()];
    const PodOfProcess pod = pod_of({{"", path}});
    EXPECT_EQ(pod.uids.empty(), pod.container.empty());
    if (!pod.container.empty()) {
      EXPECT_TRUE(path.starts_with(pod.container.at("")));
    }
  }
}

}  // namespace
}  // namespace carve::node
