#include "node/cdi/host_files.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "wire/api/json_value.h"

namespace carve::node {
namespace {

namespace fs = std::filesystem;

// A folder that serves as the host's root for the agent.
class HostFilesTest : public testing::Test {
 protected:
  HostFilesTest() {
    char name[] = "/tmp/carve-host-XXXXXX";
    folder = mkdtemp(name);
  }
  ~HostFilesTest() override { fs::remove_all(folder); }
  static void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string root() const { return folder / "host"; }

  fs::path folder;
};

TEST_F(HostFilesTest, links_are_resolved_as_on_the_host) {
  const std::string lib = root() + "/usr/lib64";
  write(lib + "/libcuda.so.535.1", "driver");
  fs::create_symlink("libcuda.so.535.1", lib + "/libcuda.so.1");
  EXPECT_EQ(find_below(root(), "libcuda.so.1"), lib + "/libcuda.so.535.1");
  fs::create_symlink("/opt/nvidia/libnvidia-ml.so.1", lib + "/libnvidia-ml.so.1");
  EXPECT_EQ(find_below(root(), "libnvidia-ml.so.1"), "") << "the link leads nowhere on the host";
  write(root() + "/opt/nvidia/libnvidia-ml.so.1", "nvml");
  EXPECT_EQ(find_below(root(), "libnvidia-ml.so.1"), root() + "/opt/nvidia/libnvidia-ml.so.1");
  fs::create_symlink("../../../../../etc/passwd", lib + "/libescape.so.1");
  EXPECT_EQ(find_below(root(), "libescape.so.1"), "");
  fs::create_symlink("libcircle.so.1", lib + "/libcircle.so.1");
  EXPECT_EQ(find_below(root(), "libcircle.so.1"), "");
  EXPECT_EQ(on_host(lib + "/x", root()), "/usr/lib64/x");
  EXPECT_EQ(on_host("/usr/lib64/x", ""), "/usr/lib64/x");
}

TEST_F(HostFilesTest, a_cdi_file_contains_the_hosts_paths) {
  write(root() + "/usr/lib64/libcuda.so.1", "driver");
  write(root() + "/usr/lib64/libnvidia-ml.so.535", "nvml");
  write(root() + "/usr/lib64/libnvidia-nvvm.so.4", "companion");
  Paths paths;
  paths.shims = "/var/lib/carve/libraries/0.2.0/shim";
  paths.driver_root = root();
  paths.libcuda = root() + "/usr/lib64/libcuda.so.1";
  paths.libnvml = root() + "/usr/lib64/libnvidia-ml.so.535";
  const auto spec = api::parse(cdi_spec(ContainerSlot{17}, Slice{}, "/run/x.sock", paths, {0}));
  std::map<std::string, std::string> mounted;
  for (const auto& m : (*spec)["devices"][0]["containerEdits"]["mounts"])
    mounted[m["containerPath"]] = m["hostPath"];
  EXPECT_EQ(mounted["/usr/lib/carve/driver/libcuda.so.1"], "/usr/lib64/libcuda.so.1");
  EXPECT_EQ(mounted["/usr/lib/carve/driver/libnvidia-ml.so.1"], "/usr/lib64/libnvidia-ml.so.535");
  EXPECT_EQ(mounted["/usr/lib64/libnvidia-nvvm.so.4"], "/usr/lib64/libnvidia-nvvm.so.4");
}

TEST_F(HostFilesTest, carves_libraries_are_copied_and_replaced_atomically) {
  Paths paths;
  paths.preload = folder / "image/libcarve.so";
  paths.shims = folder / "image/shim";
  write(paths.preload, "preload 1");
  for (const char* name : {"libcuda.so.1", "libnvidia-ml.so.1"}) write(paths.shims + "/" + name, name);
  const std::string target = folder / "libraries";
  const auto installed = install_libraries(paths, target, "0.2.0");
  ASSERT_TRUE(installed) << installed.error().message;
  EXPECT_EQ(installed->shims, target + "/0.2.0/shim");
  EXPECT_EQ(text_of(installed->preload), "preload 1");
  EXPECT_EQ(text_of(installed->shims + "/libcuda.so.1"), "libcuda.so.1");
  EXPECT_EQ(installed->libcuda, "libcuda.so.1") << "a real driver is not copied";

  std::ifstream mounted(installed->preload);  // A container that has the file mounted.
  write(paths.preload, "preload 2");
  ASSERT_TRUE(install_libraries(paths, target, "0.2.0"));
  EXPECT_EQ(text_of(installed->preload), "preload 2");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(mounted), {}), "preload 1");

  fs::remove(paths.preload);
  EXPECT_THAT(install_libraries(paths, target, "0.2.0").error().message, testing::HasSubstr("libcarve.so"));
  EXPECT_FALSE(install_libraries(*installed, "/dev/null/x", "0.2.0"));
}

TEST_F(HostFilesTest, a_simulated_driver_is_also_copied) {
  Paths paths;
  paths.sim_set = "/var/lib/carve/sim";
  paths.preload = folder / "image/libcarve.so";
  paths.shims = folder / "image/shim";
  paths.libcuda = folder / "image/sim/libcuda.so.1";
  paths.libnvml = folder / "image/sim/libnvidia-ml.so.1";
  for (const std::string& file : {paths.preload, paths.shims + "/libcuda.so.1",
                                  paths.shims + "/libnvidia-ml.so.1", paths.libcuda, paths.libnvml})
    write(file, file);
  const auto installed = install_libraries(paths, folder / "libraries", "1");
  ASSERT_TRUE(installed) << installed.error().message;
  EXPECT_EQ(installed->driver, (folder / "libraries/1/sim").string());
  EXPECT_EQ(text_of(installed->libcuda), paths.libcuda);
  EXPECT_EQ(text_of(installed->libnvml), paths.libnvml);
}

}  // namespace
}  // namespace carve::node
