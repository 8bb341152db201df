#include "node/store/sqlite_store.h"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace carve::node {
namespace {

using ledger::Ledger;
using testing::HasSubstr;

struct Directory {
  std::filesystem::path path;
  Directory() {
    char name[] = "/tmp/carve-store-XXXXXX";
    path = mkdtemp(name);
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string ledger() const { return path / "ledger.db"; }
};

Device device() {
  Device d;
  d.uuid.bytes[0] = 1;
  d.name = "NVIDIA A10";
  d.native = 16_GiB;
  d.reserved = 1_GiB;
  return d;
}

Slice holding(std::string name, Bytes memory) {
  Slice a;
  a.name = std::move(name);
  a.owner = 1000;
  a.policy = Policy::native_burst_share;
  a.lifetime = Lifetime::until_deleted;
  a.application = "web";
  a.holder.claim = "claim-of-" + a.name;
  a.parts = {{device().uuid, memory, {1}, 3_MiB}};
  return a;
}

const ledger::Stamp morning{1'700'000'000'000'000'000, "boot", 12};

Ledger reread(SqliteStore& store) {
  Ledger ledger;
  const auto changes = store.read();
  EXPECT_TRUE(changes) << changes.error().message;
  for (const auto& change : *changes) EXPECT_TRUE(ledger.apply(change));
  return ledger;
}

TEST(SqliteStore, reads_back_what_was_written) {
  Directory dir;
  Ledger ledger;
  {
    auto opened = SqliteStore::open(dir.ledger(), 1);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->moved_aside, "");
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.see(device())));
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.grant(holding("a", 2_GiB), morning)));
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.grant(holding("b", 3_GiB), morning)));
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.end(ledger.find("a")->id, morning, "stopped")));
  }
  auto opened = SqliteStore::open(dir.ledger(), 1);
  ASSERT_TRUE(opened);
  const Ledger again = reread(*opened->store);
  EXPECT_EQ(again.living(), ledger.living());
  EXPECT_EQ(again.ended(), ledger.ended());
  EXPECT_EQ(again.balances().at(device().uuid).free, 12_GiB);
  EXPECT_EQ(again.grant(holding("c", 1_GiB), morning).has_value(), true);
}

TEST(SqliteStore, records_every_change_of_a_slice_and_its_time) {
  Directory dir;
  Ledger ledger;
  {
    auto opened = SqliteStore::open(dir.ledger(), 1);
    ASSERT_TRUE(opened);
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.see(device())));
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.grant(holding("a", 2_GiB), morning)));
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.grant(holding("b", 1_GiB), morning)));
    const uint64_t id = ledger.find("a")->id;
    for (uint32_t i = 1; i <= 3; ++i) {
      const ledger::Terms terms{{i << 30},
                                {i * 1000},
                                Policy::guaranteed_burst_share,
                                LatencyClass::latency,
                                Isolation::memory_and_compute};
      ASSERT_TRUE(post(ledger, *opened->store,
                       *ledger.alter(id, terms, {morning.utc_ns + i, "boot", morning.monotonic_ns + i})));
    }
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.end(ledger.find("b")->id, morning, "stopped")));
  }
  auto opened = SqliteStore::open(dir.ledger(), 1);
  ASSERT_TRUE(opened);
  const Ledger again = reread(*opened->store);
  EXPECT_EQ(again.living(), ledger.living());
  EXPECT_EQ(again.ended(), ledger.ended());
  ASSERT_EQ(again.find("a")->periods.size(), 3u);
  EXPECT_EQ(again.find("a")->periods[0].terms.memory, 2_GiB);
  EXPECT_EQ(again.find("a")->periods[1].to.utc_ns, morning.utc_ns + 2);
  EXPECT_EQ(again.balances().at(device().uuid).free, 12_GiB);

  // Also inserts them as a whole, as when a lost ledger is rebuilt from state files.
  Directory elsewhere;
  Ledger rebuilt;
  auto fresh = SqliteStore::open(elsewhere.ledger(), 1);
  ASSERT_TRUE(post(rebuilt, *fresh->store, *rebuilt.see(device())));
  ASSERT_TRUE(post(rebuilt, *fresh->store, ledger::Granted{*again.find("a")}));
  EXPECT_EQ(reread(*fresh->store).living(), again.living());
}

TEST(SqliteStore, records_when_slices_were_last_alive_and_how_busy_they_were) {
  Directory dir;
  Ledger ledger;
  const ledger::Stamp noon{morning.utc_ns + 7, "boot", morning.monotonic_ns + 7};
  {
    auto opened = SqliteStore::open(dir.ledger(), 1);
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.see(device())));
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.grant(holding("a", 2_GiB), morning)));
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.grant(holding("b", 2_GiB), morning)));
    const uint64_t a = ledger.find("a")->id, b = ledger.find("b")->id;
    ASSERT_TRUE(post(ledger, *opened->store, ledger.alive(morning, {{a, {5, 7}}, {b, {6}}})));
    ASSERT_TRUE(post(ledger, *opened->store, ledger.alive(noon, {{a, {50, 3}}, {b, {3}}, {99, {1}}})));
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.end(b, noon, "stopped", {60})));
  }
  auto opened = SqliteStore::open(dir.ledger(), 1);
  const Ledger again = reread(*opened->store);
  EXPECT_EQ(again.last_alive(), noon);
  EXPECT_EQ(again.living(), ledger.living());
  EXPECT_EQ(again.ended(), ledger.ended());
  EXPECT_EQ(again.find("a")->busy_ns, 50u) << "it never decreases";
  EXPECT_EQ(again.find("a")->peak_bytes, 7u);
  EXPECT_EQ(again.ended().front().busy_ns, 60u);
}

TEST(SqliteStore, keeps_the_unchanged_amounts_of_parts_that_differ) {
  Directory dir;
  Ledger ledger;
  Device second = device();
  second.uuid.bytes[0] = 2;
  second.index = 1;
  {
    auto opened = SqliteStore::open(dir.ledger(), 1);
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.see(device())));
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.see(second)));
    Slice slice = holding("a", 4_GiB);
    slice.parts.push_back({second.uuid, 1_GiB, {7}});
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.grant(slice, morning)));
    ledger::Terms terms = ledger::terms_of(slice);
    terms.latency = LatencyClass::latency;
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.alter(ledger.find("a")->id, terms, morning)));
    EXPECT_EQ(ledger.find("a")->slice.parts[1].memory, 1_GiB);
    terms.share = {9};
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.alter(ledger.find("a")->id, terms, morning)));
  }
  auto opened = SqliteStore::open(dir.ledger(), 1);
  EXPECT_EQ(reread(*opened->store).living(), ledger.living());
}

TEST(SqliteStore, lists_records_by_id_including_those_that_the_ledger_has_dropped) {
  Directory dir;
  Ledger ledger;
  auto opened = SqliteStore::open(dir.ledger(), 1);
  ASSERT_TRUE(post(ledger, *opened->store, *ledger.see(device())));
  for (int i = 1; i <= 5; ++i) {
    Slice slice = holding(fmt::format("t{}", i), 1_MiB);
    slice.account = "research";
    slice.labels = {{"a", "1"}, {"b", ""}};
    slice.memory_units = {16, MemoryUnit::mib_128};
    slice.parts[0].usable = 15_GiB;
    slice.parts[0].native = 16_GiB;
    slice.parts[0].model = "NVIDIA A10";
    slice.holder = {.pod = PodContainer{"a", slice.name, "uid-" + slice.name, "c"}, .claim = {}};
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.grant(slice, morning)));
    if (i < 4) {
      ASSERT_TRUE(post(ledger, *opened->store, *ledger.end(ledger.find(slice.name)->id, morning, "x")));
    }
  }
  const auto all = opened->store->records_after(0, 100);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 5u);
  EXPECT_EQ((*all)[4], *ledger.find("t5"));
  EXPECT_EQ((*all)[4].slice.labels.at("a"), "1");
  const auto some = opened->store->records_after((*all)[1].id, 2);
  ASSERT_EQ(some->size(), 2u);
  EXPECT_EQ(some->front().slice.name, "t3");
  EXPECT_EQ(opened->store->records_after(all->back().id, 2)->size(), 0u);
  const auto named = opened->store->records({(*all)[3].id, (*all)[1].id, 999});
  ASSERT_TRUE(named);
  EXPECT_THAT(*named, testing::ElementsAre((*all)[1], (*all)[3]));
}

TEST(SqliteStore, rejects_changes_on_a_full_disk_with_a_message) {
  Directory dir;
  Ledger ledger;
  auto opened = SqliteStore::open(dir.ledger(), 1);
  ASSERT_TRUE(post(ledger, *opened->store, *ledger.see(device())));
  opened->store->limit_pages(1);  // Limits the file to its current size.
  Outcome<void> last;
  int granted = 0;
  for (; granted < 1000 && last; ++granted)
    last = post(ledger, *opened->store, *ledger.grant(holding(fmt::format("t{}", granted), 1_MiB), morning));
  ASSERT_FALSE(last);
  EXPECT_THAT(last.error().message, HasSubstr("disk is full"));
  EXPECT_EQ(reread(*opened->store).living(), ledger.living());
  opened->store->limit_pages(100000);
  EXPECT_TRUE(post(ledger, *opened->store, *ledger.grant(holding("later", 1_MiB), morning)));
}

TEST(SqliteStore, moves_a_damaged_file_aside_and_keeps_the_file) {
  Directory dir;
  std::ofstream(dir.ledger()) << std::string(8192, 'x');
  auto opened = SqliteStore::open(dir.ledger(), 77);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->moved_aside, dir.ledger() + ".corrupt-77");
  EXPECT_EQ(std::filesystem::file_size(opened->moved_aside), 8192u);
  Ledger ledger;
  EXPECT_TRUE(post(ledger, *opened->store, *ledger.see(device())));
}

TEST(SqliteStore, detects_damage_in_the_middle_of_the_file) {
  Directory dir;
  {
    Ledger ledger;
    auto opened = SqliteStore::open(dir.ledger(), 1);
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.see(device())));
    for (int i = 0; i < 200; ++i)
      ASSERT_TRUE(
          post(ledger, *opened->store, *ledger.grant(holding(fmt::format("t{}", i), 1_MiB), morning)));
  }
  std::fstream file(dir.ledger(), std::ios::in | std::ios::out | std::ios::binary);
  const auto size = std::filesystem::file_size(dir.ledger());
  for (size_t at = 4096; at < size; at += 4096) {
    file.seekp(static_cast<std::streamoff>(at));
    file << std::string(512, '\xee');
  }
  file.close();
  auto opened = SqliteStore::open(dir.ledger(), 5);
  ASSERT_TRUE(opened);
  EXPECT_NE(opened->moved_aside, "");
}

TEST(SqliteStore, rejects_another_schema_and_leaves_the_file_unchanged) {
  for (const int version : {1, SqliteStore::schema_version - 1, SqliteStore::schema_version + 1, 99}) {
    Directory dir;
    { ASSERT_TRUE(SqliteStore::open(dir.ledger(), 1)); }
    sqlite3* db = nullptr;
    sqlite3_open(dir.ledger().c_str(), &db);
    sqlite3_exec(db, fmt::format("PRAGMA user_version = {}", version).c_str(), nullptr, nullptr, nullptr);
    sqlite3_close(db);
    const auto opened = SqliteStore::open(dir.ledger(), 1);
    ASSERT_FALSE(opened) << version;
    EXPECT_THAT(opened.error().message,
                HasSubstr(version > SqliteStore::schema_version ? "by a newer carve" : "by an older carve"));
    EXPECT_THAT(opened.error().message, HasSubstr("--state"));
    EXPECT_TRUE(std::filesystem::exists(dir.ledger()));
  }
}

TEST(SqliteStore, reports_a_missing_directory) {
  const auto opened = SqliteStore::open("/nowhere/at/all/ledger.db", 1);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("/nowhere/at/all/ledger.db"));
}

// A child grants and ends slices in a loop, reports each acknowledgement on a pipe, and is killed.
TEST(SqliteStore, acknowledged_changes_survive_a_kill_at_any_moment) {
  std::mt19937 dice(3);
  for (int round = 0; round < 15; ++round) {
    Directory dir;
    int promised[2];
    ASSERT_EQ(pipe(promised), 0);
    const pid_t child = fork();
    if (child == 0) {
      Ledger ledger;
      auto opened = SqliteStore::open(dir.ledger(), 1);
      if (!opened || !post(ledger, *opened->store, *ledger.see(device()))) _exit(1);
      for (unsigned i = 0;; ++i) {
        const auto change = ledger.grant(holding(fmt::format("t{}", i), 1_MiB), morning);
        if (!change || !post(ledger, *opened->store, *change)) _exit(2);
        if (write(promised[1], &i, sizeof i) != sizeof i) _exit(3);
        ledger::Terms more = ledger::terms_of(std::get<ledger::Granted>(*change).record.slice);
        more.memory = 2_MiB;
        if (!post(ledger, *opened->store,
                  *ledger.alter(ledger.find(fmt::format("t{}", i))->id, more, morning)))
          _exit(5);
        if (!post(ledger, *opened->store, *ledger.end(ledger.find(fmt::format("t{}", i))->id, morning, "x")))
          _exit(4);
      }
    }
    close(promised[1]);
    usleep(static_cast<useconds_t>(dice() % 60'000 + 5'000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    unsigned last = 0, count = 0;
    while (read(promised[0], &last, sizeof last) == sizeof last) ++count;
    close(promised[0]);
    auto opened = SqliteStore::open(dir.ledger(), 1);
    ASSERT_TRUE(opened);
    ASSERT_EQ(opened->moved_aside, "");
    const Ledger ledger = reread(*opened->store);
    ASSERT_TRUE(ledger.balanced());
    ASSERT_LE(ledger.living().size(), 1u);
    const size_t known = ledger.living().size() + ledger.ended().size();
    if (count < Ledger::max_ended_records) {
      ASSERT_GE(known, count);
      ASSERT_LE(known, count + 1);
    }
  }
}

// SQLite detects damaged pages but not a changed value in a page.
TEST(SqliteStore, treats_values_that_contradict_each_other_as_damage) {
  for (const char* change :
       {"UPDATE record SET slice_policy = 'unheard-of'", "UPDATE record SET slice_name = CAST(x'ff' AS TEXT)",
        "UPDATE part SET memory_bytes = 1 << 60", "UPDATE part SET device = 'GPU-none'",
        "UPDATE part SET device = 'GPU-99999999-0000-0000-0000-000000000000'",
        "UPDATE device SET native_bytes = 1 << 30", "DELETE FROM part"}) {
    const Directory dir;
    {
      auto opened = SqliteStore::open(dir.ledger(), 1);
      Ledger ledger;
      ASSERT_TRUE(post(ledger, *opened->store, *ledger.see(device())));
      ASSERT_TRUE(post(ledger, *opened->store, *ledger.grant(holding("a", 2_GiB), morning)));
    }
    sqlite3* file = nullptr;
    ASSERT_EQ(sqlite3_open(dir.ledger().c_str(), &file), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(file, change, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(file);
    sqlite3_close(file);
    auto again = SqliteStore::open(dir.ledger(), 77);
    ASSERT_TRUE(again) << change << again.error().message;
    EXPECT_EQ(again->moved_aside, dir.ledger() + ".corrupt-77") << change;
    EXPECT_NE(again->damage, "") << change;
    EXPECT_TRUE(reread(*again->store).living().empty()) << change;
  }
}

// Whatever the damage to the files, the store opens and contains a ledger. 60 corruptions take about a
// second.
TEST(SqliteStore, opens_after_any_damage) {
  unsigned moved_aside = 0, behind = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 dice(seed);
    const Directory dir;
    Ledger ledger;
    {
      auto opened = SqliteStore::open(dir.ledger(), 1);
      ASSERT_TRUE(post(ledger, *opened->store, *ledger.see(device())));
      for (unsigned i = 0; i < 6; ++i) {
        ASSERT_TRUE(
            post(ledger, *opened->store, *ledger.grant(holding(fmt::format("t{}", i), 1_GiB), morning)));
        if (dice() % 3 == 0) {
          ASSERT_TRUE(post(ledger, *opened->store,
                           *ledger.end(ledger.find(fmt::format("t{}", i))->id, morning, "x")));
        }
      }
      // Files as left by a killed agent, with the write-ahead log.
      std::filesystem::create_directory(dir.path / "killed");
      for (const char* part : {"", "-wal"}) std::filesystem::copy(dir.ledger() + part, dir.path / "killed");
    }
    const bool has_log = dice() % 3 != 0;
    const std::string ledger_file = has_log ? dir.path / "killed/ledger.db" : dir.path / "ledger.db";
    const std::string file = ledger_file + (has_log ? "-wal" : "");
    const auto size = std::filesystem::file_size(file);
    if (size == 0) continue;
    if (dice() % 2 == 0) {
      std::filesystem::resize_file(file, dice() % size);
    } else {
      std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
      for (unsigned i = 0; i < 20; ++i) {
        bytes.seekp(static_cast<std::streamoff>(dice() % size));
        bytes.put(static_cast<char>(dice()));
      }
    }
    auto opened = SqliteStore::open(ledger_file, 7);
    ASSERT_TRUE(opened) << "seed " << seed << ": " << opened.error().message;
    moved_aside += opened->moved_aside.empty() ? 0 : 1;
    behind += opened->store->generation().changes < 7 ? 1 : 0;
    const Ledger found = reread(*opened->store);
    EXPECT_TRUE(found.balanced());
    EXPECT_LE(found.next_id(), ledger.next_id());
  }
  EXPECT_GT(moved_aside, 5u);
  EXPECT_GT(behind, 20u);
}

// The counts by which an agent detects that the file is older than before.
TEST(Generation, counts_the_changes_of_one_file) {
  const Directory dir;
  ledger::Generation first;
  {
    auto opened = SqliteStore::open(dir.ledger(), 1);
    ASSERT_TRUE(opened);
    first = opened->store->generation();
    EXPECT_EQ(first.changes, 0u);
    EXPECT_EQ(first.ledger.size(), 16u);
    Ledger ledger;
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.see(device())));
    std::filesystem::copy(dir.path, dir.path / "older");
    ASSERT_TRUE(post(ledger, *opened->store, *ledger.grant(holding("a", 2_GiB), morning)));
    EXPECT_EQ(opened->store->generation().changes, 2u);
  }
  {
    auto again = SqliteStore::open(dir.ledger(), 1);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->store->generation(), (ledger::Generation{first.ledger, 2}));
    ASSERT_TRUE(again->store->raise_changes(9));
    ASSERT_TRUE(again->store->raise_changes(5)) << "it never decreases";
    EXPECT_EQ(again->store->generation().changes, 9u);
  }
  auto older = SqliteStore::open(dir.path / "older/ledger.db", 1);
  ASSERT_TRUE(older);
  EXPECT_EQ(older->store->generation(), (ledger::Generation{first.ledger, 1}));
  std::filesystem::remove(dir.ledger());
  auto fresh = SqliteStore::open(dir.ledger(), 1);
  ASSERT_TRUE(fresh);
  EXPECT_NE(fresh->store->generation().ledger, first.ledger);
}

}  // namespace
}  // namespace carve::node
