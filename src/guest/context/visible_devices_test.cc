#include "guest/context/visible_devices.h"

#include <stdlib.h>
#include <string.h>

#include <string>

#include "guest/process/uuid.h"
#include "guest/testing/driver_fake.h"

namespace carve::guest {
namespace {

const std::string first = "GPU-03000000-0000-0000-0000-000000000000";
const std::string second = "GPU-01000000-0000-0000-0000-000000000000";

class Visible : public DriverTest {
 protected:
  Visible() : slice(2, 10 << 20) {
    memset(slice.control->devices[0].uuid, 0, 16);
    memset(slice.control->devices[1].uuid, 0, 16);
    slice.control->devices[0].uuid[0] = 3;
    slice.control->devices[1].uuid[0] = 1;
  }
  ~Visible() override { unsetenv("CUDA_VISIBLE_DEVICES"); }
  std::string read(const char* list, size_t room = 200) {
    char out[200];
    return by_uuid(*slice.control, 2, list, out, room) ? out : "no room";
  }
  Attached slice;
};

TEST_F(Visible, the_driver_reads_only_the_uuids_of_the_slices_devices) {
  EXPECT_EQ(read(nullptr), first + "," + second) << "not set";
  EXPECT_EQ(read("0"), first);
  EXPECT_EQ(read("1,0"), second + "," + first);
  EXPECT_EQ(read(" 1 , 0 "), second + "," + first);
  EXPECT_EQ(read("GPU-01"), second);
  EXPECT_EQ(read("GPU-01,GPU-03"), second + "," + first);
  EXPECT_EQ(read((first + ",GPU-99000000-0000-0000-0000-000000000000").c_str()), first);
  for (const char* words : {"", "-1", "garbage", ",", "7", "gpu-01", "GPU-", "GPU-0", "all",
                            "GPU-99000000-0000-0000-0000-000000000000,GPU-01"})
    EXPECT_EQ(read(words), "") << words;
}

TEST_F(Visible, the_first_entry_that_names_no_device_ends_the_list) {
  EXPECT_EQ(read("0,2,1"), first);
  EXPECT_EQ(read("0,-1,1"), first);
  EXPECT_EQ(read("0,garbage"), first);
  EXPECT_EQ(read("1,99999999999999999999999999,0"), second);
  EXPECT_EQ(read("GPU-01,0"), second) << "numbers and UUIDs cannot be mixed";
  EXPECT_EQ(read("0,GPU-01"), first);
}

TEST_F(Visible, a_repeated_device_stays_in_the_list_for_the_driver_to_reject) {
  EXPECT_EQ(read("1,1,0"), second + "," + second);
  EXPECT_EQ(read("GPU-01,GPU-010"), second + "," + second);
}

TEST_F(Visible, nothing_is_written_if_the_output_is_too_small) {
  EXPECT_EQ(read("0,1", 82), "no room");
  EXPECT_EQ(read("0", 0), "no room");
  std::string many = "0";
  for (int i = 0; i < 5000; ++i) many += ",0";
  EXPECT_EQ(read(many.c_str()), first + "," + first);
}

TEST_F(Visible, an_unset_variable_is_set_while_the_driver_reads_it) {
  static std::string seen;
  on<&cuInit>([](unsigned) {
    seen = getenv("CUDA_VISIBLE_DEVICES");
    return CUDA_SUCCESS;
  });
  unsetenv("CUDA_VISIBLE_DEVICES");
  for (int i = 0; i < 2; ++i) {
    seen.clear();
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(seen, first + "," + second);
    EXPECT_EQ(getenv("CUDA_VISIBLE_DEVICES"), nullptr);
  }
}

TEST_F(Visible, an_unset_variable_that_a_thread_sets_during_cuinit_stays_set) {
  on<&cuInit>([](unsigned) {
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    return CUDA_SUCCESS;
  });
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_STREQ(getenv("CUDA_VISIBLE_DEVICES"), "1");
}

TEST_F(Visible, the_program_never_sees_the_uuids_in_its_variable) {
  static std::string seen;
  on<&cuInit>([](unsigned) {
    seen = getenv("CUDA_VISIBLE_DEVICES");
    return CUDA_SUCCESS;
  });
  setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  const char* const before = getenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(seen, second);
  EXPECT_EQ(getenv("CUDA_VISIBLE_DEVICES"), before) << "the variable was replaced";
  EXPECT_STREQ(before, "1");
}

TEST_F(Visible, a_variable_that_a_thread_changes_during_cuinit_keeps_the_new_value) {
  on<&cuInit>([](unsigned) {
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    for (int i = 0; i < 200; ++i) setenv(("CARVE_TEST_" + std::to_string(i)).c_str(), "x", 1);
    return CUDA_SUCCESS;
  });
  setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_STREQ(getenv("CUDA_VISIBLE_DEVICES"), "0");
}

}  // namespace
}  // namespace carve::guest
