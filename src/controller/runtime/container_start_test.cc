#include "controller/runtime/container_start.h"

#include <gmock/gmock.h>

namespace carve::controller {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

ProgramStart started() {
  return {.slice = "a-1-0",
          .node = "n1",
          .attempt = 3,
          .owner_uid = 1000,
          .command = {"serve", "--all"},
          .env = {{"PATH", "/opt/bin"}, {"PORT", "20000"}, {"TOKEN", "secret"}},
          .workdir = "/srv",
          .grace_seconds = 7,
          .image = "models/llm:1"};
}

TEST(ContainerStart, passes_the_slice_the_variables_and_the_command_to_the_container) {
  const LaunchRequest request = container_request(started(), {});
  const std::string line = fmt::format("{}", fmt::join(request.supervise.command, " "));
  EXPECT_THAT(line, HasSubstr("--device carve.dev/slice=a-1-0"));
  EXPECT_THAT(line, HasSubstr("--workdir /srv"));
  EXPECT_THAT(line, HasSubstr("--stop-timeout 7"));
  EXPECT_THAT(
      line,
      HasSubstr(
          "--env PATH=/opt/bin --env PORT --env TOKEN --entrypoint [\"serve\",\"--all\"] models/llm:1"));
  EXPECT_THAT(line, Not(HasSubstr("secret")));
  EXPECT_THAT(line, Not(HasSubstr("runc")));
  EXPECT_EQ(request.supervise.env.at("TOKEN"), "secret");
  EXPECT_FALSE(request.supervise.env.contains("PATH")) << "podman keeps its own PATH";
  EXPECT_EQ(request.supervise.slice, "") << "the container's hook enters the slice";
  EXPECT_EQ(request.uid, 1000u);
  EXPECT_EQ(request.supervise.attempt, 3u);
}

TEST(ContainerStart, replaces_the_entrypoint_by_the_command_and_the_cmd_by_the_args) {
  ProgramStart start = started();
  const auto words = [&] { return container_request(start, {}).supervise.command; };
  start.args = {"x", ""};
  EXPECT_THAT(words(), testing::Contains("--entrypoint"));
  EXPECT_EQ(words().back(), "");
  EXPECT_EQ(words()[words().size() - 3], "models/llm:1");
  start.command = {};
  EXPECT_THAT(words(), Not(Contains("--entrypoint")));
}

TEST(ContainerStart, removes_a_leftover_container_by_its_name) {
  const LaunchRequest request =
      container_request(started(), {.has_both_cgroup_versions = true, .may_raise_limits = false});
  EXPECT_THAT(request.supervise.command, Contains("carve-a-1-0"));
  EXPECT_THAT(request.supervise.command, Contains("runc"));
  EXPECT_THAT(request.supervise.command, Contains("nofile=4096:4096"));
  EXPECT_EQ(request.supervise.cleanup.back(), "carve-a-1-0");
}

TEST(ContainerStart, leaves_cpu_and_memory_limits_to_podman) {
  ProgramStart start = started();
  EXPECT_THAT(container_request(start, {}).supervise.command, Not(Contains("--cpus")));
  start.cpu_limit_milli = 1050;
  start.memory_limit_bytes = 64 << 20;
  const LaunchRequest request = container_request(start, {});
  const std::string line = fmt::format("{}", fmt::join(request.supervise.command, " "));
  EXPECT_THAT(line, HasSubstr("--cpus 1.050 --memory 67108864b"));
  EXPECT_EQ(request.limits.cpu_milli, 0u) << "podman's own process has no limit";
}

TEST(ContainerStart, passes_no_device_without_a_slice) {
  ProgramStart start = started();
  start.node = "";
  start.env["CUDA_VISIBLE_DEVICES"] = "0";
  const LaunchRequest request = container_request(start, {});
  EXPECT_THAT(request.supervise.command, Not(Contains("--device")));
  EXPECT_THAT(request.supervise.command, Contains("NVIDIA_VISIBLE_DEVICES"))
      << "the image's own value may be 'all'";
  EXPECT_EQ(request.supervise.env.at("NVIDIA_VISIBLE_DEVICES"), "void");
  EXPECT_EQ(request.supervise.env.at("CUDA_VISIBLE_DEVICES"), "");
}

}  // namespace
}  // namespace carve::controller
