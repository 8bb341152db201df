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
  // "same" if nothing is replaced.
  std::string read(const char* list, size_t room = 200) {
    char out[200];
    return by_uuid(*slice.control, 2, list, out, room) ? out : "same";
  }
  Attached slice;
};

TEST_F(Visible, numbers_become_the_slices_devices_and_all_else_stays) {
  EXPECT_EQ(read("0"), first);
  EXPECT_EQ(read("1,0"), second + "," + first);
  EXPECT_EQ(read(" 1 , GPU-03"), second + ",GPU-03");
  EXPECT_EQ(read("GPU-01,0"), "GPU-01," + first);
  EXPECT_EQ(read("0,-1,1"), first + ",-1," + second);
  EXPECT_EQ(read("0,garbage"), first + ",garbage");
  for (const char* words : {"", "-1", "GPU-01", "garbage", ",", "GPU-01,,GPU-03", "0x1", "1a"})
    EXPECT_EQ(read(words), "same") << words;
}

TEST_F(Visible, a_number_that_names_no_device_ends_the_list) {
  EXPECT_EQ(read("0,2,1"), first);
  EXPECT_EQ(read("7"), "");
  EXPECT_EQ(read("1,99999999999999999999999999,0"), second);
}

TEST_F(Visible, without_room_nothing_is_replaced) {
  EXPECT_EQ(read("0,1", 30), "same");
  EXPECT_EQ(read("0", 0), "same");
  std::string many = "0";
  for (int i = 0; i < 5000; ++i) many += ",0";
  EXPECT_EQ(read(many.c_str()), "same");
}

TEST_F(Visible, only_the_drivers_own_reading_meets_the_uuids) {
  static std::string seen;
  on<&cuInit>([](unsigned) {
    seen = getenv("CUDA_VISIBLE_DEVICES");
    return CUDA_SUCCESS;
  });
  setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  const char* const before = getenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(seen, second);
  EXPECT_EQ(getenv("CUDA_VISIBLE_DEVICES"), before) << "the same bytes";
  EXPECT_STREQ(before, "1");
}

TEST_F(Visible, what_a_thread_sets_meanwhile_stays_set) {
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
