#include "node/cdi/cdi.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "os/socket.h"
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

TEST(Cdi, has_the_devices_the_mounts_and_the_hook_of_a_slice) {
  const auto spec = api::parse(cdi_spec(slice(), "/run/x.sock", simulated(), {}));
  ASSERT_TRUE(spec);
  EXPECT_EQ((*spec)["kind"], "carve.dev/slice");
  const auto& device = (*spec)["devices"][0];
  EXPECT_EQ(device["name"], "a");
  const auto& edits = device["containerEdits"];
  EXPECT_EQ(edits["env"][0], "CUDA_VISIBLE_DEVICES=0,1");
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

TEST(Cdi, has_the_device_nodes_of_real_devices) {
  Paths real = simulated();
  real.sim_set = "";
  const auto spec = api::parse(cdi_spec(slice(), "/run/x.sock", real, {3, 7}));
  std::set<std::string> nodes;
  for (const auto& node : (*spec)["devices"][0]["containerEdits"]["deviceNodes"]) nodes.insert(node["path"]);
  EXPECT_TRUE(nodes.contains("/dev/nvidia3") && nodes.contains("/dev/nvidia7"));
  const auto simulated_spec = api::parse(cdi_spec(slice(), "/run/x.sock", simulated(), {}));
  EXPECT_FALSE((*simulated_spec)["devices"][0]["containerEdits"].contains("deviceNodes"));
}

TEST(Cdi, writes_and_removes_the_file_atomically) {
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
  EXPECT_THAT(refused.error().message, testing::HasSubstr("--cdi-dir"));
  std::filesystem::remove_all(dir);
}

TEST(Cdi, gives_a_slot_its_own_attach_directory_and_calls_no_program) {
  const auto spec = api::parse(cdi_spec(ContainerSlot{17}, slice(), "/run/x.sock", simulated(), {}));
  ASSERT_TRUE(spec);
  EXPECT_EQ((*spec)["cdiVersion"], "0.3.0");
  EXPECT_EQ((*spec)["kind"], "carve.dev/slot");
  const auto& device = (*spec)["devices"][0];
  EXPECT_EQ(device["name"], "s017");
  const auto& edits = device["containerEdits"];
  EXPECT_FALSE(edits.contains("hooks"));
  EXPECT_EQ(edits["env"][0], "CUDA_VISIBLE_DEVICES=0,1");
  std::map<std::string, std::string> mounted;
  for (const auto& m : edits["mounts"]) mounted[m["containerPath"]] = m["hostPath"];
  EXPECT_EQ(mounted["/run/carve"], "/run/x.sock.run/attach/s017");
  EXPECT_EQ(mounted["/usr/lib64/libcuda.so.1"], "/opt/carve/lib/carve/shim/libcuda.so.1");
}

TEST(Cdi, gives_a_runtime_without_cdi_the_same_mounts) {
  const api::SlotFiles files = slot_files(ContainerSlot{17}, "/run/x.sock", simulated(), {});
  const auto spec = api::parse(cdi_spec(ContainerSlot{17}, slice(), "/run/x.sock", simulated(), {}));
  const auto& mounts = (*spec)["devices"][0]["containerEdits"]["mounts"];
  ASSERT_EQ(files.mounts.size(), mounts.size());
  for (size_t i = 0; i < mounts.size(); ++i) {
    EXPECT_EQ(mounts[i]["hostPath"], files.mounts[i].host_path);
    EXPECT_EQ(mounts[i]["containerPath"], files.mounts[i].container_path);
    EXPECT_EQ(mounts[i]["options"][0], files.mounts[i].writable ? "rw" : "ro");
  }
  EXPECT_TRUE(files.device_nodes.empty());
  const auto real = slot_files(ContainerSlot{17}, "/run/x.sock", {}, {0, 1}).device_nodes;
  EXPECT_TRUE(std::ranges::find(real, "/dev/nvidia1") != real.end());
}

// A scratch directory, with a path for a socket in it.
struct Place {
  std::filesystem::path dir = [] {
    char name[] = "/tmp/carve-cdi-XXXXXX";
    return std::filesystem::path(mkdtemp(name));
  }();
  std::string socket = dir / "s";
  Place() { std::filesystem::create_directory(socket + ".run"); }
  ~Place() { std::filesystem::remove_all(dir); }
};

TEST(Cdi, writes_and_removes_the_file_of_a_slot_atomically) {
  Place place;
  const std::string cdi = place.dir / "cdi";
  remove_cdi(cdi, ContainerSlot{17});
  ASSERT_TRUE(write_cdi(cdi, ContainerSlot{17}, slice(), place.socket, simulated(), {}));
  EXPECT_TRUE(std::filesystem::exists(cdi + "/carve.dev-slot_s017.json"));
  remove_cdi(cdi, ContainerSlot{17});
  EXPECT_TRUE(std::filesystem::is_empty(cdi));
  // With a directory in place of the file, the write fails and leaves nothing behind.
  std::filesystem::create_directory(cdi + "/carve.dev-slot_s017.json");
  EXPECT_FALSE(write_cdi(cdi, ContainerSlot{17}, slice(), place.socket, simulated(), {}));
  EXPECT_FALSE(std::filesystem::exists(cdi + "/carve.dev-slot_s017.json.new"));
}

TEST(Cdi, keeps_the_attach_directory_of_a_slot_and_recreates_its_socket) {
  Place place;
  const std::string directory = attach_directory(place.socket, ContainerSlot{3});
  EXPECT_EQ(directory, place.socket + ".run/attach/s003");
  struct stat before {
  }, after{};
  for (int start = 0; start < 2; ++start) {
    const auto listener = listen_in(place.socket, ContainerSlot{3});
    ASSERT_TRUE(listener) << listener.error().message;
    ASSERT_EQ(stat(directory.c_str(), start == 0 ? &before : &after), 0);
    EXPECT_TRUE(os::connect_to(directory + "/carved.sock.attach", SOCK_SEQPACKET));
  }
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_FALSE(os::connect_to(directory + "/carved.sock.attach", SOCK_SEQPACKET)) << "no agent listens";
  EXPECT_FALSE(std::filesystem::exists(place.socket + ".s003"));
  remove_attach_directory(place.socket, ContainerSlot{3});
  EXPECT_FALSE(std::filesystem::exists(directory));
  const auto refused = listen_in("/nowhere/s", ContainerSlot{3});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("/nowhere/s.run/attach"));
}

}  // namespace
}  // namespace carve::node
