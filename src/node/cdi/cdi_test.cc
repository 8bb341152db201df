#include "node/cdi/cdi.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "wire/api/json_value.h"

namespace carve::node {
namespace {

Slice slice() {
  Slice a;
  a.name = "a";
  a.parts = {{Uuid{{1}}, 2_GiB, {}}, {Uuid{{2}}, 2_GiB, {}}};
  return a;
}

Paths simulated() {
  Paths p;
  p.programs = "/opt/carve/bin";
  p.shims = "/opt/carve/lib/carve/shim";
  p.sim_set = "/var/lib/carve/sim";
  p.libcuda = "/opt/carve/lib/carve/sim/libcuda.so.1";
  p.libnvml = "/opt/carve/lib/carve/sim/libnvidia-ml.so.1";
  return p;
}

TEST(Cdi, the_file_names_the_slice_its_devices_its_mounts_and_the_hook) {
  const auto spec = api::parse(cdi_spec(slice(), "/run/x.sock", simulated(), {}));
  ASSERT_TRUE(spec);
  EXPECT_EQ((*spec)["kind"], "carve.dev/slice");
  const auto& device = (*spec)["devices"][0];
  EXPECT_EQ(device["name"], "a");
  const auto& edits = device["containerEdits"];
  EXPECT_EQ(edits["env"][0],
            "CUDA_VISIBLE_DEVICES=GPU-01000000-0000-0000-0000-000000000000,GPU-02000000-0000-0000-0000-"
            "000000000000");
  EXPECT_EQ(edits["env"][1], "NVIDIA_VISIBLE_DEVICES=void");
  EXPECT_EQ(edits["hooks"][0]["args"].back(), "a");
  std::map<std::string, std::string> mounted;
  std::map<std::string, std::string> mode;
  for (const auto& m : edits["mounts"]) {
    mounted[m["containerPath"]] = m["hostPath"];
    mode[m["containerPath"]] = m["options"][0];
  }
  EXPECT_EQ(mounted["/usr/lib64/libcuda.so.1"], "/opt/carve/lib/carve/shim/libcuda.so.1");
  EXPECT_EQ(mounted["/usr/lib/carve/driver/libcuda.so.1"], "/opt/carve/lib/carve/sim/libcuda.so.1");
  EXPECT_EQ(mounted["/run/carve"], "/run/x.sock.run/attach");
  EXPECT_FALSE(mounted.contains("/run/carve/carved.sock"));
  EXPECT_EQ(mode["/usr/lib/carve/driver/libcuda.so.1"], "ro");
  EXPECT_EQ(mode["/run/simgpu"], "rw");
}

TEST(Cdi, real_devices_come_with_their_nodes) {
  Paths real = simulated();
  real.sim_set = "";
  const auto spec = api::parse(cdi_spec(slice(), "/run/x.sock", real, {3, 7}));
  std::set<std::string> nodes;
  for (const auto& node : (*spec)["devices"][0]["containerEdits"]["deviceNodes"]) nodes.insert(node["path"]);
  EXPECT_TRUE(nodes.contains("/dev/nvidia3") && nodes.contains("/dev/nvidia7"));
  const auto simulated_spec = api::parse(cdi_spec(slice(), "/run/x.sock", simulated(), {}));
  EXPECT_FALSE((*simulated_spec)["devices"][0]["containerEdits"].contains("deviceNodes"));
}

TEST(Cdi, the_file_appears_whole_and_goes_away) {
  char name[] = "/tmp/carve-cdi-XXXXXX";
  const std::filesystem::path dir = mkdtemp(name);
  ASSERT_TRUE(write_cdi(dir / "cdi", slice(), "/run/x.sock", simulated(), {}));
  std::ifstream file(dir / "cdi" / "carve.dev-slice_a.json");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(api::parse(text.str()));
  remove_cdi(dir / "cdi", "a");
  EXPECT_TRUE(std::filesystem::is_empty(dir / "cdi"));
  const auto refused = write_cdi("/dev/null/cdi", slice(), "/run/x.sock", simulated(), {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().sentence, testing::HasSubstr("--cdi-dir"));
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace carve::node
