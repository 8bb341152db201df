#include "node/limits/kept_limits.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace carve::node {
namespace {

using testing::HasSubstr;

struct KeptLimitsTest : testing::Test {
  std::filesystem::path folder;
  KeptLimitsTest() {
    char name[] = "/tmp/carve-limits-XXXXXX";
    folder = mkdtemp(name);
  }
  ~KeptLimitsTest() override { std::filesystem::remove_all(folder); }
  KeptLimits open() const { return *KeptLimits::open(folder / "limits.json"); }
  std::string refusal(const api::LimitChange& change) const {
    const auto changed = open().change(change);
    return changed ? "accepted" : changed.error().message;
  }
};

const api::Limit of_anna{.user = "anna", .uid = 1000, .memory = 16_GiB, .slices = 4};

TEST_F(KeptLimitsTest, survive_a_restart_and_change_only_the_given_amounts) {
  ASSERT_TRUE(open().change({.limit = of_anna, .unlimited = {}}));
  ASSERT_EQ(open().all().size(), 1u);
  EXPECT_EQ(open().all()[0], of_anna);
  api::LimitChange change{.limit = {.user = "anna", .uid = 1000, .share = Share{5000}},
                          .unlimited = {"slices"}};
  ASSERT_TRUE(open().change(change));
  EXPECT_EQ(open().all()[0],
            (api::Limit{.user = "anna", .uid = 1000, .memory = 16_GiB, .share = Share{5000}}));
  EXPECT_EQ(open().remove("user:1000")->user, "anna");
  EXPECT_TRUE(open().all().empty());
  EXPECT_EQ(open().remove("user:1000").error().kind, FailureKind::not_found);
}

TEST_F(KeptLimitsTest, keep_users_accounts_and_the_default_apart) {
  KeptLimits limits = open();
  ASSERT_TRUE(limits.change({.limit = of_anna, .unlimited = {}}));
  ASSERT_TRUE(limits.change({.limit = {.account = "anna", .slices = 1}, .unlimited = {}}));
  ASSERT_TRUE(limits.change({.limit = {.user = "*", .slices = 2}, .unlimited = {}}));
  ASSERT_TRUE(limits.change({.limit = {.account = "*", .slices = 3}, .unlimited = {}}));
  EXPECT_EQ(limits.all().size(), 4u);
  EXPECT_EQ(limits.remove("user:*")->slices, 2u);
  EXPECT_EQ(limits.remove("account:*")->slices, 3u);
}

TEST_F(KeptLimitsTest, reject_hostile_changes_without_an_effect) {
  EXPECT_THAT(refusal({}), HasSubstr("exactly one of user and account is required"));
  EXPECT_THAT(refusal({.limit = {.user = "a", .account = "b"}, .unlimited = {}}), HasSubstr("exactly one"));
  EXPECT_THAT(refusal({.limit = {.user = "anna"}, .unlimited = {}}), HasSubstr("limit.uid is required"));
  EXPECT_THAT(refusal({.limit = {.user = "*", .uid = 3}, .unlimited = {}}),
              HasSubstr("only the limit of one user"));
  EXPECT_THAT(refusal({.limit = {.account = "a\n"}, .unlimited = {}}), HasSubstr("printable"));
  EXPECT_THAT(refusal({.limit = {.account = std::string(300, 'a')}, .unlimited = {}}),
              HasSubstr("at most 253"));
  EXPECT_THAT(refusal({.limit = of_anna, .unlimited = {"gpus"}}), HasSubstr("'gpus' is not an amount"));
  EXPECT_THAT(refusal({.limit = of_anna, .unlimited = {"memory"}}), HasSubstr("give only one"));
  EXPECT_TRUE(open().all().empty());
}

TEST_F(KeptLimitsTest, report_a_damaged_file) {
  for (const char* text : {"{", "{\"limits\":[{\"user\":1}]}", "", "{\"other\":[]}"}) {
    std::ofstream(folder / "limits.json") << text;
    const auto opened = KeptLimits::open(folder / "limits.json");
    ASSERT_FALSE(opened) << text;
    EXPECT_THAT(opened.error().message, HasSubstr("remove the file and set the limits again"));
  }
}

TEST_F(KeptLimitsTest, are_complete_after_a_kill_at_any_moment) {
  constexpr uint32_t kills = 40;
  for (uint32_t i = 1; i <= kills; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      KeptLimits limits = open();
      for (uint32_t slices = 0;; ++slices)
        (void)limits.change(
            {.limit = {.user = "*", .memory = Bytes{slices}, .slices = slices}, .unlimited = {}});
    }
    while (!std::filesystem::exists(folder / "limits.json")) usleep(100);
    usleep(i * 97);  // The moment of the kill; the assertions hold for each.
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const auto opened = KeptLimits::open(folder / "limits.json");
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_EQ(opened->all().size(), 1u);
    EXPECT_EQ(opened->all()[0].memory->count, *opened->all()[0].slices);
  }
}

}  // namespace
}  // namespace carve::node
