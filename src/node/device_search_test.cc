#include "node/device_search.h"

#include <gtest/gtest.h>

#include <future>

#include "os/clock.h"

namespace carve::node {
namespace {

Outcome<FoundDevices> one_device() {
  FoundDevices out;
  out.inventory.devices.emplace_back();
  return out;
}

TEST(DeviceSearch, returns_the_result_once) {
  DeviceSearch search(one_device);
  auto found = search.wait(-1);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->inventory.devices.size(), 1u);
  EXPECT_FALSE(search.wait(-1));
}

TEST(DeviceSearch, returns_the_reason_if_it_finds_nothing) {
  DeviceSearch search(
      []() -> Outcome<FoundDevices> { return failure(FailureKind::unavailable, "no driver"); });
  const auto found = search.wait(-1);
  ASSERT_TRUE(found && !*found);
  EXPECT_EQ(found->error().message, "no driver");
}

TEST(DeviceSearch, delivers_a_late_result_on_the_loop) {
  os::Loop loop;
  const auto may_end = std::make_shared<std::promise<void>>();
  DeviceSearch search([may_end] {
    may_end->get_future().wait();
    return one_device();
  });
  EXPECT_FALSE(search.wait(os::millisecond));
  size_t devices = 0;
  search.when_found(loop, [&](const Outcome<FoundDevices>& found) {
    devices = found->inventory.devices.size();
    loop.stop();
  });
  loop.after(0, [&] { may_end->set_value(); });
  loop.run();
  EXPECT_EQ(devices, 1u);
}

TEST(DeviceSearch, delivers_a_result_that_arrives_between_wait_and_when_found) {
  os::Loop loop;
  const auto ended = std::make_shared<std::promise<void>>();
  DeviceSearch search([ended] {
    ended->set_value();
    return one_device();
  });
  ended->get_future().wait();
  bool delivered = false;
  search.when_found(loop, [&](const Outcome<FoundDevices>&) {
    delivered = true;
    loop.stop();
  });
  loop.run();
  EXPECT_TRUE(delivered);
}

TEST(DeviceSearch, is_left_running_if_it_never_ends) {
  // The thread ends with the process.
  DeviceSearch search([]() -> Outcome<FoundDevices> {
    for (;;) pause();
  });
  EXPECT_FALSE(search.wait(0));
}

}  // namespace
}  // namespace carve::node
