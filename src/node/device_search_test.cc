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

TEST(DeviceSearch, returns_what_it_found_once) {
  DeviceSearch search(one_device);
  auto found = search.wait(-1);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->inventory.devices.size(), 1u);
  EXPECT_FALSE(search.wait(-1));
}

TEST(DeviceSearch, returns_why_there_is_nothing) {
  DeviceSearch search(
      []() -> Outcome<FoundDevices> { return failure(FailureKind::unavailable, "no driver"); });
  const auto found = search.wait(-1);
  ASSERT_TRUE(found && !*found);
  EXPECT_EQ(found->error().message, "no driver");
}

TEST(DeviceSearch, that_takes_long_delivers_to_the_loop_later) {
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

TEST(DeviceSearch, that_ended_between_the_two_delivers_too) {
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

TEST(DeviceSearch, that_never_ends_is_left_behind) {
  // The thread ends with the process.
  DeviceSearch search([]() -> Outcome<FoundDevices> {
    for (;;) pause();
  });
  EXPECT_FALSE(search.wait(0));
}

}  // namespace
}  // namespace carve::node
