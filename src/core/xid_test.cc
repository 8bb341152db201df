#include "core/xid.h"

#include <gtest/gtest.h>

namespace carve {
namespace {

TEST(Xid, is_printed_with_its_meaning_if_known) {
  EXPECT_EQ(xid_text(31), "Xid 31 (GPU memory page fault)");
  EXPECT_EQ(xid_text(7777), "Xid 7777");
}

TEST(Xid, of_a_program_leaves_the_device_healthy) {
  for (const uint32_t xid : {13, 31, 43, 45}) EXPECT_TRUE(is_fault_of_program(xid)) << xid;
  for (const uint32_t xid : {48, 63, 74, 79, 95, 7777}) EXPECT_FALSE(is_fault_of_program(xid)) << xid;
}

TEST(Xid, counts_are_listed_by_number) {
  EXPECT_EQ(listed({{79, 1}, {31, 5}}), (std::vector<XidCount>{{31, 5}, {79, 1}}));
}

}  // namespace
}  // namespace carve
