// Tests the limits against a model, driven by a seed. Root and three users with two accounts request slices, change
// them and end them on the real ledger, in any order, while operators change the limits. The test adds up the amounts
// by itself and checks each decision: no sum that grows exceeds its limit, and no request is refused without need.
// 400 histories have 80 steps each.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

#include "node/limits/limit_rule.h"

namespace carve::node {
namespace {

const ledger::Stamp step_time{1'000, "boot", 10};
constexpr unsigned max_devices = 3;

struct Sums {
  uint64_t memory = 0, share = 0, slices = 0;
  std::array<bool, max_devices> on{};

  uint64_t devices() const { return static_cast<uint64_t>(std::ranges::count(on, true)); }
};

Uuid uuid_of(unsigned index) {
  Uuid out;
  out.bytes[0] = static_cast<uint8_t>(index + 1);
  return out;
}

class World {
 public:
  explicit World(unsigned seed) : dice_(seed) {
    for (unsigned index = 0; index < max_devices; ++index) {
      Device device;
      device.uuid = uuid_of(index);
      device.index = index;
      device.native = 64_GiB;
      EXPECT_TRUE(ledger_.apply(*ledger_.see(device)));
    }
  }

  void step() {
    switch (dice_() % 8) {
      case 0: return change_limits();
      case 1: return end();
      case 2:
      case 3: return change();
      default: return grant();
    }
  }
  unsigned granted = 0, refused = 0;

 private:
  bool is_over(const api::Limit& limit, const Sums& was, const Sums& is) const {
    const auto over = [](const auto& most, uint64_t before, uint64_t after, auto count) {
      return most && after > before && after > count(*most);
    };
    const auto number = [](uint32_t n) { return uint64_t{n}; };
    return over(limit.memory, was.memory, is.memory, [](Bytes b) { return b.count; }) ||
           over(limit.share, was.share, is.share, [](Share s) { return uint64_t{s.basis_points}; }) ||
           over(limit.slices, was.slices, is.slices, number) ||
           over(limit.devices, was.devices(), is.devices(), number);
  }
  // Adds up the live slices for which `matches` holds, with other terms for one record.
  template <class Matches>
  Sums sums(Matches matches, uint64_t changed = 0, const Slice* with = nullptr) const {
    Sums out;
    const auto add = [&](const Slice& slice) {
      if (!matches(slice)) return;
      ++out.slices;
      for (const SlicePart& part : slice.parts) {
        out.memory += part.memory.count;
        out.share += part.share.basis_points;
        out.on[part.device.bytes[0] - 1u] = true;
      }
    };
    for (const auto& [id, record] : ledger_.living())
      if (id != changed || with == nullptr) add(record.slice);
    if (with != nullptr) add(*with);
    return out;
  }
  // Returns whether the slice, in place of the record `changed`, keeps the limits according to the model.
  bool keeps_limits(const Slice& slice, uint64_t changed) const {
    const auto of_user = [&](const Slice& s) { return s.owner == slice.owner; };
    const auto of_account = [&](const Slice& s) { return s.account == slice.account; };
    for (const auto& [key, limit] : limits_) {
      const bool is_own = key == std::to_string(slice.owner);
      const bool is_default =
          key == "*" && slice.owner != 0 && !limits_.contains(std::to_string(slice.owner));
      if ((is_own || is_default) && is_over(limit, sums(of_user), sums(of_user, changed, &slice)))
        return false;
      if (limit.account == slice.account &&
          is_over(limit, sums(of_account), sums(of_account, changed, &slice)))
        return false;
    }
    return true;
  }
  std::vector<api::Limit> all_limits() const {
    std::vector<api::Limit> out;
    for (const auto& [key, limit] : limits_) out.push_back(limit);
    return out;
  }

  void apply(const ledger::Change& change) { EXPECT_TRUE(ledger_.apply(change)); }
  void change_limits() {
    const uint32_t who = dice_() % 5;
    api::Limit limit;
    if (who < 2) limit.account = who == 0 ? "red" : "blue";
    if (who == 2) limit.user = "*";
    if (who > 2) limit.user = "u", limit.uid = who - 2;
    const std::string key = who < 2    ? "account:" + limit.account
                            : who == 2 ? "*"
                                       : std::to_string(*limit.uid);
    if (dice_() % 4 == 0) {
      limits_.erase(key);
      return;
    }
    if (dice_() % 2 == 0) limit.memory = Bytes{(dice_() % 24ull) << 30};
    if (dice_() % 2 == 0) limit.share = Share{static_cast<uint32_t>(dice_() % 20000)};
    if (dice_() % 2 == 0) limit.slices = static_cast<uint32_t>(dice_() % 6);
    if (dice_() % 2 == 0) limit.devices = static_cast<uint32_t>(dice_() % 4);
    limits_[key] = limit;
  }
  void grant() {
    Slice slice;
    slice.name = "s" + std::to_string(names_++);
    slice.owner = static_cast<uint32_t>(dice_() % 4);  // 0 is root.
    slice.account = dice_() % 2 == 0 ? "red" : "blue";
    const unsigned first = dice_() % max_devices, count = dice_() % 2 + 1;
    const Share share{static_cast<uint32_t>(dice_() % 3 * 1000)};
    for (unsigned i = 0; i < count; ++i)
      slice.parts.push_back(
          {uuid_of((first + i) % max_devices), Bytes{(dice_() % 4 + 1ull) << 30}, share, {}});
    const auto change = ledger_.grant(slice, step_time, ledger::unlimited_shares);
    if (!change) return;
    const bool accepted = check_grant(all_limits(), ledger_, slice).has_value();
    EXPECT_EQ(accepted, keeps_limits(slice, 0));
    ++(accepted ? granted : refused);
    if (accepted) apply(*change);
  }
  uint64_t some_record() {
    auto at = ledger_.living().begin();
    std::advance(at, static_cast<long>(dice_() % ledger_.living().size()));
    return at->first;
  }
  void change() {
    if (ledger_.living().empty()) return;
    const uint64_t id = some_record();
    Slice slice = ledger_.living().at(id).slice;
    ledger::Terms terms = ledger::terms_of(slice);
    if (!slice.has_equal_parts()) return;  // The agent rejects one amount for parts that differ.
    if (dice_() % 2 == 0) terms.memory = Bytes{(dice_() % 8 + 1ull) << 30};
    if (dice_() % 2 == 0) terms.share = Share{static_cast<uint32_t>(dice_() % 5 * 1000)};
    const auto change = ledger_.alter(id, terms, step_time, ledger::unlimited_shares);
    if (!change) return;
    ledger::set_terms(slice, terms);
    const bool accepted = check_change(all_limits(), ledger_, id, terms).has_value();
    EXPECT_EQ(accepted, keeps_limits(slice, id));
    ++(accepted ? granted : refused);
    if (accepted) apply(*change);
  }
  void end() {
    if (!ledger_.living().empty()) apply(*ledger_.end(some_record(), step_time, "ended"));
  }

  std::mt19937 dice_;
  ledger::Ledger ledger_;
  std::map<std::string, api::Limit> limits_;
  unsigned names_ = 0;
};

TEST(LimitModel, decides_as_the_model_in_every_history) {
  unsigned granted = 0, refused = 0;
  for (unsigned seed = 0; seed < 400 && !testing::Test::HasFailure(); ++seed) {
    World world(seed);
    for (unsigned i = 0; i < 80; ++i) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", step " << i);
      world.step();
    }
    granted += world.granted;
    refused += world.refused;
  }
  EXPECT_GT(granted, 5000u);
  EXPECT_GT(refused, 2000u);
}

}  // namespace
}  // namespace carve::node
