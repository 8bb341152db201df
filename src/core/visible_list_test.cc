#include "core/visible_list.h"

#include <gtest/gtest.h>

namespace carve {
namespace {

const std::vector<std::string> machine = {"GPU-aa00", "GPU-ab11", "GPU-cc22", "GPU-dd33"};

TEST(VisibleDevices, are_those_that_the_list_names_and_the_slice_was_granted) {
  const std::vector<std::string> granted = {"GPU-cc22", "GPU-aa00", "GPU-ab11"};
  const struct {
    std::optional<std::string_view> list;
    std::vector<std::string> seen;
  } rows[] = {
      {std::nullopt, granted},                          // In the slice's order.
      {"0,1,2", {"GPU-aa00", "GPU-ab11", "GPU-cc22"}},  // In the order of the list.
      {"2,0", {"GPU-cc22", "GPU-aa00"}},
      {"3", {}},              // Not granted,
      {"3,1", {"GPU-ab11"}},  // A device that is not granted does not end the list.
      {"GPU-ab,GPU-cc22", {"GPU-ab11", "GPU-cc22"}},
      {"GPU-AB1", {"GPU-ab11"}},
      {"gpu-ab1", {}},
      {"GPU-a,2", {}},  // Matches two devices, so it names none of them.
      {"GPU-", {}},
      {"ab11", {}},
      {" 1 , 2", {"GPU-ab11", "GPU-cc22"}},
      {"1,garbage,2", {"GPU-ab11"}},
      {"1,-1,2", {"GPU-ab11"}},
      {"1,4,2", {"GPU-ab11"}},
      {"1,99999999999999999999,2", {"GPU-ab11"}},
      {"1,,2", {"GPU-ab11"}},
      {"1,MIG-ab11/0/0", {"GPU-ab11"}},
      {"1,GPU-cc22", {"GPU-ab11"}},  // Numbers and UUIDs cannot be mixed.
      {"GPU-cc22,1", {"GPU-cc22"}},
      {"0x1", {"GPU-aa00"}},
      {"+1", {"GPU-ab11"}},
      {"1,1", {}},             // A device named twice makes the list empty,
      {"GPU-ab,GPU-ab1", {}},  // also under different names.
      {"3,3,1", {}},
      {"-1", {}},
      {"", {}},
  };
  for (const auto& row : rows)
    EXPECT_EQ(visible_devices(machine, granted, row.list), row.seen) << row.list.value_or("(not set)");
}

}  // namespace
}  // namespace carve
