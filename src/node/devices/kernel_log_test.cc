#include "node/devices/kernel_log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

namespace carve::node {
namespace {

constexpr const char* page_fault =
    "NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python3, Ch 00000008, intr 10000000. MMU Fault";

TEST(PciAddress, is_the_same_in_both_forms) {
  const auto nvml = parse_pci_address("00000000:3B:00.0");
  ASSERT_TRUE(nvml);
  EXPECT_EQ(nvml, parse_pci_address("0000:3b:00"));
  EXPECT_EQ(nvml->bus, 0x3bu);
  for (const char* text : {"", "3b:00", "0000:3b:00.", "0000:3b:00 ", "0000:zz:00", "100000000:3b:00"})
    EXPECT_FALSE(parse_pci_address(text)) << text;
}

TEST(ParseXid, finds_the_process_in_the_line) {
  for (const std::string prefix : {"", "3,1234,5678901,-;", "[   12.345678] "}) {
    const auto record = parse_xid(prefix + page_fault);
    ASSERT_TRUE(record) << prefix;
    EXPECT_EQ(record->device, (PciAddress{0, 0x3b, 0}));
    EXPECT_EQ(record->code, 31u);
    EXPECT_EQ(record->pid, 4711);
    EXPECT_EQ(record->process, "python3");
  }
  EXPECT_EQ(parse_xid("NVRM: Xid (PCI:0000:3b:00): 13, pid='4711', name=a b, Graphics")->pid, 4711);
}

TEST(ParseXid, accepts_an_unknown_process) {
  for (const char* line : {"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen",
                           "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
                           "NVRM: Xid (PCI:0000:3b:00): 79, pid=-1, name=x", "NVRM: Xid (PCI:0000:3b:00): 79",
                           "NVRM: Xid (PCI:0000:3b:00): 79, pid=99999999999, name=x"}) {
    const auto record = parse_xid(line);
    ASSERT_TRUE(record) << line;
    EXPECT_EQ(record->code, 79u);
    EXPECT_FALSE(record->pid) << line;
  }
}

TEST(ParseXid, cannot_be_misled_by_a_programs_name) {
  const auto record = parse_xid("NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=x, pid=8, name=y");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->pid, 7);
  EXPECT_FALSE(parse_xid("NVRM: loading NVRM: Xid (PCI:0000:3b:00): 31, pid=8, name=y"));
  EXPECT_EQ(
      parse_xid("NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=" + std::string(4000, 'x'))->process.size(),
      64u);
}

TEST(ParseXid, returns_no_value_for_other_lines) {
  for (const char* line : {"", "usb 1-1: new device", "NVRM: GPU at PCI:0000:3b:00: GPU-1", "NVRM: Xid (PCI:",
                           "NVRM: Xid (PCI:0000:3b:00): ", "NVRM: Xid (PCI:0000:3b:00): x, pid=1",
                           "NVRM: Xid (PCI:0000:3b:00", "NVRM: Xid (PCI:0000:3b:00): 99999999999"})
    EXPECT_FALSE(parse_xid(line)) << line;
}

// Parses every prefix of a line, and lines with changed bytes, without a fault.
TEST(ParseXid, survives_hostile_bytes) {
  const std::string line = page_fault;
  for (size_t size = 0; size < line.size(); ++size) parse_xid(line.substr(0, size));
  std::minstd_rand random(1);
  unsigned read = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string changed = line;
    for (unsigned n = random() % 4; n-- > 0;)
      changed[random() % changed.size()] = static_cast<char>(random() % 256);
    read += parse_xid(changed).has_value();
  }
  EXPECT_GT(read, 10'000u);
  EXPECT_LT(read, 100'000u);
}

class KernelLogFile : public testing::Test {
 protected:
  void SetUp() override {
    const int fd = mkstemp(path_.data());
    ASSERT_GE(fd, 0);
    close(fd);
  }
  void TearDown() override { unlink(path_.c_str()); }
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  std::string path_ = testing::TempDir() + "kernel-log-XXXXXX";
};

TEST_F(KernelLogFile, reads_lines_written_after_opening_once) {
  append(std::string(page_fault) + "\n");
  auto log = KernelLog::open(path_);
  ASSERT_TRUE(log);
  EXPECT_TRUE(log->read().empty());
  append(std::string("3,1,2,-;") + page_fault + "\n SUBSYSTEM=pci\nanother line\n");
  EXPECT_EQ(log->read().size(), 1u);
  EXPECT_TRUE(log->read().empty());
}

TEST_F(KernelLogFile, accepts_a_line_that_is_written_in_parts) {
  auto log = KernelLog::open(path_);
  ASSERT_TRUE(log);
  const std::string line = page_fault;
  append(line.substr(0, 30));
  EXPECT_TRUE(log->read().empty());
  append(line.substr(30) + "\n");
  EXPECT_EQ(log->read().size(), 1u);
}

TEST_F(KernelLogFile, reads_a_long_log_in_several_calls) {
  auto log = KernelLog::open(path_);
  ASSERT_TRUE(log);
  std::string text = std::string(1 << 20, 'x') + "\n";
  for (int i = 0; i < 1000; ++i) text += std::string(page_fault) + "\n";
  append(text);
  size_t found = 0;
  int calls = 0;
  for (; found < 1000 && calls < 100; ++calls) found += log->read().size();
  EXPECT_EQ(found, 1000u);
  EXPECT_GT(calls, 10);
}

TEST(KernelLog, reports_a_missing_log) {
  const auto log = KernelLog::open("/nonexistent/kmsg");
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().message, "/nonexistent/kmsg cannot be read: No such file or directory");
}

}  // namespace
}  // namespace carve::node
