#include "node/settings/kept_settings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace carve::node {
namespace {

struct KeptSettingsTest : testing::Test {
  std::filesystem::path folder;
  KeptSettingsTest() {
    char name[] = "/tmp/carve-settings-XXXXXX";
    folder = mkdtemp(name);
  }
  ~KeptSettingsTest() override { std::filesystem::remove_all(folder); }
  KeptSettings open(std::optional<MemoryUnit> given = {}) const {
    return *KeptSettings::open(folder / "settings.json", given);
  }
};

TEST_F(KeptSettingsTest, keep_the_unit_across_a_restart_unless_the_command_line_changes_it) {
  EXPECT_EQ(open().memory_unit().effective, MemoryUnit::gib);
  ASSERT_TRUE(open().want(MemoryUnit::mib_128, {}));
  EXPECT_EQ(open().memory_unit().effective, MemoryUnit::mib_128);
  KeptSettings settings = open(MemoryUnit::gib);
  EXPECT_TRUE(settings.settle({}));
  EXPECT_EQ(open().memory_unit().effective, MemoryUnit::gib);
}

TEST_F(KeptSettingsTest, keep_the_old_unit_until_the_last_slice_in_units_has_ended) {
  KeptSettings settings = open();
  ASSERT_TRUE(settings.want(MemoryUnit::mib_128, {"a", "b"}));
  EXPECT_EQ(settings.memory_unit().effective, MemoryUnit::gib);
  EXPECT_EQ(settings.memory_unit().blocked_by, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(settings.settle({"b"}));
  EXPECT_EQ(settings.memory_unit().blocked_by, std::vector<std::string>{"b"});
  KeptSettings again = open();
  EXPECT_TRUE(again.memory_unit().pending());
  EXPECT_TRUE(again.settle({}));
  EXPECT_EQ(again.memory_unit().effective, MemoryUnit::mib_128);
}

TEST_F(KeptSettingsTest, keep_the_message_that_rejects_slices) {
  ASSERT_TRUE(open().refuse_grants("node n1 is cordoned"));
  EXPECT_EQ(open().grants_refused(), "node n1 is cordoned");
  ASSERT_TRUE(open().refuse_grants(""));
  EXPECT_EQ(open().grants_refused(), "");
}

TEST_F(KeptSettingsTest, report_a_damaged_file) {
  std::ofstream(folder / "settings.json") << "{";
  const auto opened = KeptSettings::open(folder / "settings.json", {});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find(fmt::format("cannot read {}: ", (folder / "settings.json").string())),
            std::string::npos);
}

}  // namespace
}  // namespace carve::node
