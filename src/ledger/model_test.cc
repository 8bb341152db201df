// Tests the ledger against a model, with a scheduler driven by a seed. Four clients request slices, wait,
// repeat requests, change their slices' terms, and end them. The agent is killed between any two steps, and
// its successor reads the store; the disk is sometimes full. After each step the test checks that
//
//  - every byte is in exactly one account;
//  - a client that got the answer "granted" has its slice;
//  - each slice belongs to a client that got this answer, or that may still repeat its request under the same
// id;
//  - no request id has two slices.
//
// 4,000 histories of 80 steps take about two seconds.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>

#include "ledger/testing/store_fake.h"

namespace carve::ledger {
namespace {

const Stamp now{1'000, "boot", 10};

Device device(unsigned index) {
  Device d;
  d.uuid.bytes[0] = static_cast<uint8_t>(index + 1);
  d.index = index;
  d.native = 16_GiB;
  d.reserved = 1_GiB;
  return d;
}

struct Client {
  std::string request_id;  // Id of the grant that the client requests or has received.
  Slice wanted;
  std::optional<Change> decided;  // A decision that has not been posted yet and may be stale.
  std::optional<uint64_t> told;   // The client's record according to the last response.
  bool gave_back = false;         // The client has requested the end and has no response yet.
};

class World {
 public:
  explicit World(unsigned seed) : dice_(seed) {
    for (unsigned i = 0; i < 2; ++i) EXPECT_TRUE(post(ledger_, store_, *ledger_.see(device(i))));
    for (unsigned c = 0; c < clients_.size(); ++c) wish(c);
  }

  void step() {
    store_.full = dice_() % 12 == 0;
    const unsigned c = dice_() % clients_.size();
    Client& client = clients_[c];
    if (dice_() % 14 == 0) return crash();
    if (client.decided) return post_it(client, c);
    if (!client.told) {  // Sends a request, or repeats it under the same id.
      if (const auto change = ledger_.grant(client.wanted, now))
        client.decided = *change;
      else if (dice_() % 3 == 0)
        wish(c);  // Insufficient capacity. Sends another request the next time.
    } else if (dice_() % 3 == 0 && ledger_.living().contains(*client.told)) {
      Terms terms = terms_of(ledger_.living().at(*client.told).slice);
      terms.memory = {(dice_() % 9 + 1ull) << 30};
      terms.share = {static_cast<uint32_t>(dice_() % 5 * 1000)};
      if (const auto change = ledger_.alter(*client.told, terms, now)) client.decided = *change;
    } else if (dice_() % 2 == 0) {
      client.gave_back = true;
      if (const auto change = ledger_.end(*client.told, now, "given back"))
        client.decided = *change;
      else
        client.told.reset(), wish(c);  // The record ended before the crash, but the client got no response.
    }
  }

  void check(const std::string& where) {
    ASSERT_TRUE(ledger_.balanced()) << where;
    std::set<std::string> ids;
    for (const auto& [id, record] : ledger_.living()) {
      ASSERT_TRUE(ids.insert(record.slice.request_id).second)
          << where << ": two records of request " << record.slice.request_id;
      const bool wanted = std::ranges::any_of(clients_, [&](const Client& c) {
        return c.request_id == record.slice.request_id && (!c.told || *c.told == id);
      });
      ASSERT_TRUE(wanted) << where << ": '" << record.slice.name << "' belongs to no client";
    }
    for (const Client& c : clients_)
      if (c.told && !c.gave_back) {
        const auto record = ledger_.living().find(*c.told);
        ASSERT_TRUE(record != ledger_.living().end()) << where << ": a client's slice was lost";
        ASSERT_EQ(record->second.slice.request_id, c.request_id) << where;
      }
    for (const auto& [uuid, b] : ledger_.balances()) {
      Bytes held;
      Share shares;
      for (const auto& [id, part] : b.held) {
        held.count += part.memory.count;
        shares.basis_points += part.share.basis_points;
      }
      ASSERT_LE(shares, whole_device) << where << ": compute granted twice";
      ASSERT_LE(held.count + b.reserved.count, b.device.native.count) << where << ": over-committed";
    }
  }

  unsigned granted = 0, stale = 0, crashes = 0, between = 0, altered = 0;

 private:
  void wish(unsigned c) {
    Client& client = clients_[c];
    client = {};
    client.request_id = fmt::format("r{}", ++requests_);
    client.wanted.name = fmt::format("t{}", dice_() % 6);  // Names collide, and the request is rejected.
    client.wanted.request_id = client.request_id;
    for (unsigned i = 0; i < 2; ++i)
      if (dice_() % 2 != 0 || i == 1)
        client.wanted.parts.push_back({device(i).uuid,
                                       Bytes{(dice_() % 9 + 1ull) << 30},
                                       {static_cast<uint32_t>(dice_() % 5 * 1000)},
                                       {}});
  }

  // The three steps of post(), with the agent killed between any two of them.
  void post_it(Client& client, unsigned c) {
    const Change change = *client.decided;
    client.decided.reset();
    Ledger tried = ledger_;
    if (!tried.apply(change)) {
      ++stale;  // Another client was faster, so this one repeats its request.
      return;
    }
    if (dice_() % 10 == 0) return ++between, crash();
    if (!store_.write(change)) return;  // The failure is reported, and nothing has happened.
    if (dice_() % 10 == 0) return ++between, crash();
    ledger_ = std::move(tried);
    if (dice_() % 10 == 0) return ++between, crash();
    if (const auto* grant = std::get_if<Granted>(&change)) {
      client.told = grant->record.id, ++granted;
    } else if (std::holds_alternative<Altered>(change)) {
      ++altered;
    } else {
      client.told.reset();
      wish(c);
    }
  }

  void crash() {
    ++crashes;
    ledger_ = reread(store_);
    for (Client& c : clients_) c.decided.reset();
  }

  std::mt19937 dice_;
  Memory store_;
  Ledger ledger_;
  std::array<Client, 4> clients_;
  unsigned requests_ = 0;
};

TEST(Model, loses_doubles_and_over_commits_nothing_in_any_interleaving_with_crashes) {
  unsigned granted = 0, stale = 0, crashes = 0, between = 0, altered = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    World world(seed);
    for (int step = 0; step < 80; ++step) {
      world.step();
      world.check(fmt::format("seed {}, step {}", seed, step));
      if (testing::Test::HasFatalFailure()) return;
    }
    granted += world.granted, stale += world.stale, crashes += world.crashes, between += world.between;
    altered += world.altered;
  }
  // Checks that the scheduler reached all cases.
  EXPECT_GT(granted, 20'000u);
  EXPECT_GT(stale, 4'000u);
  EXPECT_GT(crashes, 10'000u);
  EXPECT_GT(between, 5'000u);
  EXPECT_GT(altered, 5'000u);
}

}  // namespace
}  // namespace carve::ledger
