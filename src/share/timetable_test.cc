#include "share/timetable.h"

#include <gtest/gtest.h>

#include <random>

namespace carve::share {
namespace {

TEST(Timetable, gives_each_client_its_share_in_windows_that_do_not_overlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<Entitlement> clients;
    uint32_t left = 10000;
    while (left > 0 && clients.size() < max_clients) {
      const uint32_t share = std::min(left, 1 + static_cast<uint32_t>(random() % 4000));
      clients.push_back({.share = {share}});
      left -= share;
    }
    std::vector<Window> windows(clients.size());
    make_timetable(clients, windows);
    Ns end = 0;
    for (size_t i = 0; i < clients.size(); ++i) {
      EXPECT_EQ(windows[i].length, timetable_period * clients[i].share.basis_points / 10000);
      EXPECT_GE(windows[i].offset, end);
      end = windows[i].offset + windows[i].length;
    }
    EXPECT_LE(end, timetable_period);
  }
}

TEST(Timetable, leaves_the_gates_open_for_burst_clients_and_for_more_than_100_percent) {
  const Entitlement clients[] = {
      {.share = {2000}}, {.policy = Policy::native_burst_share, .share = {3000}}, {.share = {5000}}};
  Window windows[3];
  make_timetable(clients, windows);
  EXPECT_EQ(windows[0].length, timetable_period / 5);
  EXPECT_EQ(windows[1].period, 0);
  EXPECT_EQ(windows[2].offset, timetable_period / 5);
  const Entitlement too_many[] = {{.share = {6000}}, {.share = {6000}}};
  make_timetable(too_many, windows);
  EXPECT_EQ(windows[0].period, 0);
  EXPECT_EQ(windows[1].period, 0);
}

}  // namespace
}  // namespace carve::share
