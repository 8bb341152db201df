#include <gtest/gtest.h>
#include <linux/ioctl.h>

#include "node/guard/testing/program_memory.h"
// The rules read through guard_read_program(), which program_memory.h defines.
#include "node/guard/ioctl_rules.h"

namespace carve::node {
namespace {

constexpr uint64_t outer = 0x1000, inner = 0x2000, wrapped = 0x3000;
constexpr uint32_t heap_bytes = 184;

unsigned number(uint32_t escape, uint32_t bytes) { return _IOC(_IOC_READ | _IOC_WRITE, 'F', escape, bytes); }

struct IoctlRulesTest : testing::Test {
  ProgramMemory memory;

  IoctlRulesTest() { ProgramMemory::current = &memory; }
  ~IoctlRulesTest() override { ProgramMemory::current = nullptr; }

  // NVOS64 or NVOS21, and the size of the memory.
  guard_request alloc(uint32_t class_number, uint64_t bytes, uint32_t form = 48, uint32_t flags = 0) {
    memory.put32(outer + 12, class_number);
    memory.put64(outer + 16, inner);
    memory.put32(outer + 36, flags);
    memory.put64(inner + 64, bytes);
    return guard_read_request(number(GUARD_RM_ALLOC, form), outer);
  }
  guard_request control(uint32_t command) {
    memory.put32(outer + 8, command);
    return guard_read_request(number(GUARD_RM_CONTROL, 32), outer);
  }
  guard_request heap(uint32_t function, uint64_t bytes, uint32_t flags = 0, uint32_t attr = 0) {
    memory.put32(outer + 8, function);
    memory.put32(outer + 52, flags);
    memory.put32(outer + 56, attr);
    memory.put64(outer + 88, bytes);
    return guard_read_request(number(GUARD_VID_HEAP_CONTROL, heap_bytes), outer);
  }
};

TEST_F(IoctlRulesTest, reads_the_size_of_both_forms_of_an_allocation) {
  for (const uint32_t form : {32u, 48u}) {
    const guard_request read = alloc(0x40, 5 << 20, form);
    EXPECT_EQ(read.verdict, GUARD_ALLOCATES);
    EXPECT_EQ(read.bytes, 5u << 20);
  }
  EXPECT_EQ(alloc(0x40, UINT64_MAX).bytes, UINT64_MAX);
}

TEST_F(IoctlRulesTest, ignores_sizes_that_the_driver_rejects) {
  for (const uint32_t form : {0u, 31u, 33u, 40u, 56u}) EXPECT_EQ(alloc(0x40, 1, form).verdict, GUARD_PASS);
}

TEST_F(IoctlRulesTest, passes_other_classes) {
  for (const uint32_t class_number : {0x0u, 0x3eu, 0x3fu, 0x41u, 0x80u, 0x2080u, 0x50a0u, 0xa06cu})
    EXPECT_EQ(alloc(class_number, 1 << 20).verdict, GUARD_PASS) << class_number;
}

TEST_F(IoctlRulesTest, denies_physical_memory_and_serialized_parameters) {
  EXPECT_EQ(alloc(GUARD_MEMORY_LOCAL_PHYSICAL, 1).verdict, GUARD_DENIED);
  EXPECT_EQ(alloc(0x40, 1, 48, GUARD_SERIALIZED).verdict, GUARD_DENIED);
  EXPECT_EQ(alloc(0xa06c, 1, 48, GUARD_SERIALIZED).verdict, GUARD_DENIED);
}

TEST_F(IoctlRulesTest, ignores_the_type_in_the_number) {
  alloc(0x40, 7);
  EXPECT_EQ(guard_read_request(_IOC(0, 'x', GUARD_RM_ALLOC, 48), outer).bytes, 7u);
}

TEST_F(IoctlRulesTest, reads_inside_a_transfer) {
  alloc(0x40, 9 << 20);
  memory.put32(wrapped, GUARD_RM_ALLOC);
  memory.put32(wrapped + 4, 48);
  memory.put64(wrapped + 8, outer);
  const guard_request read = guard_read_request(number(GUARD_TRANSFER, 16), wrapped);
  EXPECT_EQ(read.verdict, GUARD_ALLOCATES);
  EXPECT_EQ(read.bytes, 9u << 20);
  memory.put32(wrapped, GUARD_TRANSFER);  // The driver rejects a transfer inside a transfer.
  EXPECT_EQ(guard_read_request(number(GUARD_TRANSFER, 16), wrapped).verdict, GUARD_PASS);
}

TEST_F(IoctlRulesTest, reads_alloc_memory) {
  memory.put32(outer + 12, 0x40);
  memory.put64(outer + 32, (3 << 20) - 1);
  EXPECT_EQ(guard_read_request(number(GUARD_RM_ALLOC_MEMORY, 56), outer).bytes, 3u << 20);
  memory.put64(outer + 32, UINT64_MAX);
  EXPECT_EQ(guard_read_request(number(GUARD_RM_ALLOC_MEMORY, 56), outer).bytes, UINT64_MAX);
  memory.put32(outer + 12, GUARD_MEMORY_LOCAL_PHYSICAL);
  EXPECT_EQ(guard_read_request(number(GUARD_RM_ALLOC_MEMORY, 56), outer).verdict, GUARD_DENIED);
  memory.put32(outer + 12, 0x3e);  // Host memory.
  EXPECT_EQ(guard_read_request(number(GUARD_RM_ALLOC_MEMORY, 56), outer).verdict, GUARD_PASS);
}

TEST_F(IoctlRulesTest, reads_the_heap_control) {
  EXPECT_EQ(heap(2, 4 << 20).bytes, 4u << 20);
  EXPECT_EQ(heap(14, 4 << 20).bytes, 4u << 20);
  EXPECT_EQ(heap(3, 4 << 20).verdict, GUARD_PASS);
  EXPECT_EQ(heap(2, 4 << 20, GUARD_VIRTUAL).verdict, GUARD_PASS);
  EXPECT_EQ(heap(2, 4 << 20, 0, GUARD_LOCATION_PCI << 25).verdict, GUARD_PASS);
  EXPECT_EQ(heap(2, 4 << 20, 0, 3u << 25).verdict, GUARD_ALLOCATES);  // Any location.
}

TEST_F(IoctlRulesTest, denies_controls_of_scheduling_only) {
  for (const uint32_t command :
       {GUARD_SET_TIMESLICE, GUARD_PREEMPT, GUARD_SET_INTERLEAVE_LEVEL, GUARD_DISABLE_CHANNELS})
    EXPECT_EQ(control(command).verdict, GUARD_DENIED) << command;
  for (const uint32_t command : {0u, 0x20800110u, 0xa06c0101u, 0xa06c0104u})
    EXPECT_EQ(control(command).verdict, GUARD_PASS) << command;
}

TEST_F(IoctlRulesTest, reports_parameters_that_are_not_in_memory) {
  alloc(0x40, 1);
  memory.remove(inner);
  EXPECT_EQ(guard_read_request(number(GUARD_RM_ALLOC, 48), outer).verdict, GUARD_UNREADABLE);
  memory.remove(outer);
  for (const uint32_t escape :
       {GUARD_RM_ALLOC, GUARD_RM_ALLOC_MEMORY, GUARD_VID_HEAP_CONTROL, GUARD_RM_CONTROL})
    EXPECT_EQ(guard_read_request(number(escape, 48), outer).verdict, GUARD_UNREADABLE) << escape;
  EXPECT_EQ(guard_read_request(number(GUARD_TRANSFER, 16), wrapped).verdict, GUARD_UNREADABLE);
}

}  // namespace
}  // namespace carve::node
