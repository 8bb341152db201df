#include "node/api/audit_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "os/process.h"

namespace carve::node {
namespace {

struct AuditLogTest : testing::Test {
  std::filesystem::path folder;
  AuditLogTest() {
    char name[] = "/tmp/carve-audit-XXXXXX";
    folder = mkdtemp(name);
  }
  ~AuditLogTest() override { std::filesystem::remove_all(folder); }
  AuditLog open() const { return AuditLog(folder / "audit.jsonl"); }
};

api::AuditEntry entry(const std::string& caller, uint64_t time, std::string message = "") {
  return {.time_ns = time,
          .caller = caller,
          .verb = "stop",
          .object = "slice a",
          .status = 200,
          .message = std::move(message)};
}

TEST_F(AuditLogTest, survives_a_restart_and_an_incomplete_last_line) {
  open().add(entry("root", 1));
  open().add(entry("uid 1000", 2, "no such slice"));
  std::ofstream(folder / "audit.jsonl", std::ios::app) << R"({"time_ns":3,"caller":"ro)";
  AuditLog log = open();
  ASSERT_EQ(log.entries().size(), 2u);
  EXPECT_EQ(log.entries()[1].message, "no such slice");
  log.add(entry("root", 4));
  EXPECT_EQ(open().entries().back().time_ns, 4u) << "the entry is on a line of its own";
}

TEST_F(AuditLogTest, one_caller_does_not_displace_the_entries_of_others) {
  AuditLog log = open();
  log.add(entry("root", 1));
  for (uint64_t i = 0; i < 3 * AuditLog::max_entries; ++i) log.add(entry("uid 1000", i));
  EXPECT_EQ(log.entries().size(), AuditLog::max_entries);
  EXPECT_EQ(log.entries().front().caller, "root");
  EXPECT_EQ(log.entries().back().time_ns, 3 * AuditLog::max_entries - 1);
}

TEST_F(AuditLogTest, its_file_stays_small_and_hostile_lines_are_skipped) {
  {
    std::ofstream file(folder / "audit.jsonl");
    file << "[]\n{\"time_ns\":-1}\nnull\n\n" << std::string(100'000, '{') << "\n";
  }
  AuditLog log = open();
  EXPECT_TRUE(log.entries().empty());
  for (uint64_t i = 0; i < 10'000; ++i) log.add(entry("uid 1000", i, std::string(2000, 'x')));
  EXPECT_LE(std::filesystem::file_size(folder / "audit.jsonl"), AuditLog::max_file_bytes);
  EXPECT_EQ(open().entries().back().time_ns, 9'999u);
  EXPECT_EQ(open().entries().back().message.size(), AuditLog::max_message_bytes);
}

}  // namespace
}  // namespace carve::node
