// Kills processes with SIGKILL between any two stores. A child process runs one operation on shared pages and
// kills itself at its n-th instrumented point. A second child repairs the pages as the agent does, and is
// killed at its m-th point. Then the agent's successor repairs them. The tests cover every n and m, and every
// table that processes share: the device's budget, the host memory's budget, the agent's own lane, and the
// table of exports. Afterwards the figures are exactly those of the live processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/shm/budget.h"
#include "wire/shm/exports.h"
#include "wire/shm/shared_blocks.h"

namespace carve::shm {
namespace {

struct KillAt {
  int* left;
  void operator()() const {
    if ((*left)-- == 0) kill(getpid(), SIGKILL);
  }
};

// Runs `act(stop)` in a child that kills itself at point `n`. Returns whether the child reached that point.
template <class Act>
bool killed_at(int n, Act act) {
  const pid_t child = fork();
  if (child == 0) {
    int left = n;
    act(KillAt{&left});
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status);
}

constexpr unsigned victim = 1, neighbour = 2;
constexpr uint64_t limit = 1000;

struct SharedMemory {
  Report* report = make<Report>();
  Control* control = make<Control>();

  SharedMemory() {
    for (unsigned slot : {victim, neighbour}) control->processes[slot] = {100 + slot, 0, 0, 0, 1, 0};
    for (Charges* c : {&report->charges, &report->spill}) {
      change(*c, {0, neighbour, 0}, 0, 7, limit);
      change(*c, {0, victim, 1}, 0, 40, limit);
      change(*c, {0, victim, 1}, 40, 50, limit);
    }
    change(report->charges, {0, Tag::agent, 0}, 0, 5, limit);
  }
  ~SharedMemory() {
    munmap(report, sizeof *report);
    munmap(control, sizeof *control);
  }
  uint64_t used() const { return read(report->charges.budget[0]).used; }
  uint64_t spilled() const { return read(report->spill.budget[0]).used; }

 private:
  template <class T>
  static T* make() {
    return static_cast<T*>(
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
};

constexpr uint64_t name = first_lock_name;  // The name of block 0.
constexpr auto none_is_locked = [](uint64_t*, unsigned) {};
constexpr auto all_are_locked = [](uint64_t* names, unsigned count) {
  for (unsigned i = 0; i < count; ++i) names[i] = 0;
};

// Exports 30 of the 50 bytes that the victim holds.
unsigned export_some(Charges& charges, KillAt stop) {
  const unsigned block = begin_block(charges, victim, 0, SharedBlockKind::descriptor, name, 0, stop);
  move(charges, {{0, victim, 1}, 50, 20}, {lane_of(charges, block), 0, 30}, stop);
  publish(charges.block[block]);
  stop();
  return block;
}

// An operation during which a process may be killed.
struct Operation {
  const char* name;
  void (*run)(Report&, KillAt);
};

const Operation operations[] = {
    {"a charge",
     [](Report& r, KillAt stop) {
       change(r.charges, {0, victim, 1}, 50, 90, limit, stop);
     }},
    {"a release",
     [](Report& r, KillAt stop) {
       change(r.charges, {0, victim, 1}, 50, 20, limit, stop);
     }},
    {"a refused charge",
     [](Report& r, KillAt stop) {
       change(r.charges, {0, victim, 1}, 50, 5000, limit, stop);
     }},
    {"the first charge of a lane",
     [](Report& r, KillAt stop) {
       change(r.charges, {0, victim, 3}, 0, 30, limit, stop);
     }},
    {"three changes of two lanes",
     [](Report& r, KillAt stop) {
       change(r.charges, {0, victim, 1}, 50, 60, limit, stop);
       change(r.charges, {0, victim, 2}, 0, 11, limit, stop);
       change(r.charges, {0, victim, 1}, 60, 0, limit, stop);
     }},
    {"a charge of device and host together",
     [](Report& r, KillAt stop) {
       change(r.charges, {0, victim, 1}, 50, 90, limit, stop);
       change(r.spill, {0, victim, 1}, 50, 400, limit, stop);
     }},
    {"their release",
     [](Report& r, KillAt stop) {
       change(r.spill, {0, victim, 1}, 50, 0, limit, stop);
       change(r.charges, {0, victim, 1}, 50, 0, limit, stop);
     }},
    {"an export", [](Report& r, KillAt stop) { export_some(r.charges, stop); }},
    {"an export, changes of its lane, and the release of the block",
     [](Report& r, KillAt stop) {
       const unsigned block = export_some(r.charges, stop);
       change(r.charges, {0, victim, 1}, 20, 25, limit, stop);
       change(r.charges, {0, victim, 1}, 25, 0, limit, stop);
       remove_holder(r.charges.block[block], victim);
       stop();
       settle_blocks(r.charges, 0, victim, none_is_locked, stop);
     }},
};

// Repairs as the agent does, and once more as its successor does.
bool bury(Report& report, KillAt stop) {
  bool done = true;
  for (Charges* c : {&report.charges, &report.spill}) done &= reclaim(*c, victim, stop);
  done &= leave_blocks(report.charges, victim, stop);
  settle_blocks(report.charges, every_device, Tag::agent, none_is_locked, stop);
  return done;
}
bool bury_as_successor(Report& report) {
  int never = -1;
  leave_blocks(report.charges, Tag::agent);
  return bury(report, KillAt{&never});
}

// Kills at every point of every operation, once with a neighbour that continues afterwards and once without.
// The agent is killed too: for one operation at every point of its repair, for the others at a few points.
TEST(Kill, between_any_two_stores_leaves_exactly_what_live_processes_hold) {
  int kills = 0, agents_killed = 0;
  for (const Operation& operation : operations) {
    for (const bool goes_on : {false, true}) {
      bool died = true;
      for (int n = 0; died; ++n) {
        bool agent_died = true;
        for (int m = 0; agent_died; m += n == 4 ? 1 : 37) {
          const SharedMemory pages;
          died = killed_at(n, [&](KillAt stop) { operation.run(*pages.report, stop); });
          kills += died;
          if (goes_on) {
            ASSERT_TRUE(change(pages.report->charges, {0, neighbour, 0}, 7, 9, limit));
            ASSERT_TRUE(change(pages.report->spill, {0, neighbour, 0}, 7, 3, limit));
          }
          agent_died = killed_at(m, [&](KillAt stop) { bury(*pages.report, stop); });
          agents_killed += agent_died;
          ASSERT_TRUE(bury_as_successor(*pages.report));
          ASSERT_EQ(pages.used(), (goes_on ? 9u : 7u) + 5u)
              << operation.name << ", killed at " << n << ", the agent at " << m;
          ASSERT_EQ(pages.spilled(), goes_on ? 3u : 7u)
              << operation.name << ", killed at " << n << ", the agent at " << m;
        }
      }
    }
  }
  EXPECT_GT(kills, 500);
  EXPECT_GT(agents_killed, 500);
}

// Kills the exporter at every point. The block stays charged as long as another process or a descriptor holds
// it.
TEST(Kill, of_an_exporter_keeps_the_charge_while_others_hold_the_memory) {
  bool died = true;
  for (int n = 0; died; ++n) {
    for (const bool imported : {false, true}) {
      const SharedMemory pages;
      Charges& charges = pages.report->charges;
      died = killed_at(n, [&](KillAt stop) {
        export_some(charges, stop);
        change(charges, {0, victim, 1}, 20, 1, limit, stop);
      });
      EXPECT_LE(pages.used(), 5u + 7 + 50) << "no byte is charged twice";
      EXPECT_GE(pages.used(), 5u + 7 + 31) << "no byte is charged less than once";
      const unsigned block = find_block(charges, name);
      const bool published = block != no_block && is_held(charges.block[block], name);
      if (imported && published) add_holder(charges.block[block], neighbour);
      ASSERT_TRUE(reclaim(charges, victim));
      ASSERT_TRUE(leave_blocks(charges, victim));
      if (!imported) settle_blocks(charges, 0, Tag::agent, all_are_locked);
      if (imported) settle_blocks(charges, 0, Tag::agent, none_is_locked);
      EXPECT_EQ(pages.used(), 5u + 7 + (published ? 30 : 0)) << n << " " << imported;
      if (published) remove_holder(charges.block[block], neighbour);
      settle_blocks(charges, 0, Tag::agent, none_is_locked);
      EXPECT_EQ(pages.used(), 5u + 7) << n << " " << imported;
      for (const SharedBlock& each : charges.block) EXPECT_EQ(each.state.load(), 0u);
    }
  }
}

// The agent charges growth on its own lane. Its successor reads the bytes that the lane holds.
TEST(Kill, of_the_agent_while_it_charges_growth_leaves_its_lane_exact) {
  bool died = true;
  for (int n = 0; died; ++n) {
    const SharedMemory pages;
    Charges& charges = pages.report->charges;
    const LaneId growth = {0, Tag::agent, 0};
    died = killed_at(n, [&](KillAt stop) { change(charges, growth, 5, 300, limit, stop); });
    const uint64_t held = holding(charges, growth);
    EXPECT_TRUE(held == 5 || held == 300) << held;
    EXPECT_EQ(pages.used(), 7 + 50 + held) << n;
    ASSERT_TRUE(change(charges, growth, held, 17, limit));
    EXPECT_EQ(pages.used(), 7u + 50 + 17) << n;
    EXPECT_EQ(n < 8, died) << "a change has eight points at which a kill can fall";
  }
}

// The victim holds 60 units of 100, 20 of them spare, and the neighbour 40. The victim, and after it the
// agent, are killed at every point of operations that withdraw and return spare bytes. Until then the
// neighbour never gets more than the bytes that the victim does not use, and in the end it gets all of them.
TEST(Kill, of_a_process_with_spare_bytes_returns_all_its_bytes) {
  constexpr uint64_t u = SpareWord::unit, all = 100 * u;
  static constexpr LaneId mine{0, victim, 1}, its{0, neighbour, 0};
  const struct {
    uint64_t least, most;  // Bytes that the victim may use, at whatever point it is killed.
    void (*run)(Charges&, KillAt);
  } spare_operations[] = {
      {40 * u, 55 * u, [](Charges& c, KillAt stop) { change(c, mine, 60 * u, 55 * u, all, stop); }},
      {5 * u, 40 * u, [](Charges& c, KillAt stop) { change(c, mine, 60 * u, 5 * u, all, stop); }},
      {40 * u, 60 * u,
       [](Charges& c, KillAt stop) {
         change(c, {0, victim, 2}, 0, 20 * u, all, stop);
       }},
      {40 * u, 60 * u,
       [](Charges& c, KillAt stop) {
         change(c, {0, victim, 2}, 0, 20 * u, all, stop);
         change(c, mine, 60 * u, 40 * u, all, stop);
       }},
      {10 * u, 40 * u,
       [](Charges& c, KillAt stop) {
         const unsigned block = begin_block(c, victim, 0, SharedBlockKind::descriptor, name, 0, stop);
         move(c, {mine, 60 * u, 10 * u}, {lane_of(c, block), 0, 30 * u}, stop);
       }},
  };
  int kills = 0;
  for (const auto& operation : spare_operations) {
    bool died = true;
    for (int n = 0; died; ++n) {
      bool agent_died = true;
      for (int m = 0; agent_died; m += n == 2 ? 1 : 23) {
        const SharedMemory pages;
        Charges& c = pages.report->charges;
        ASSERT_TRUE(change(c, {0, Tag::agent, 0}, 5, 0, all));
        ASSERT_TRUE(change(c, mine, 50, 60 * u, all));
        ASSERT_TRUE(change(c, its, 7, 40 * u, all));
        mark_spare(c, 0, victim);
        ASSERT_TRUE(add_spare(c.process[victim].spare[0][1], 20 * u, 0));
        died = killed_at(n, [&](KillAt stop) { operation.run(c, stop); });
        kills += died;
        const uint64_t used = in_use(c, 0).bytes;
        ASSERT_GE(used, 40 * u + operation.least) << n;
        ASSERT_LE(used, std::max(80 * u, 40 * u + operation.most)) << n;
        ASSERT_FALSE(change(c, its, 40 * u, 40 * u + all - used + 1, all)) << n;
        ASSERT_TRUE(change(c, its, 40 * u, 40 * u + all - used, all)) << n;
        ASSERT_EQ(in_use(c, 0).bytes, all) << n;
        agent_died = killed_at(m, [&](KillAt stop) { bury(*pages.report, stop); });
        ASSERT_TRUE(bury_as_successor(*pages.report));
        ASSERT_EQ(pages.used(), 40 * u + all - used) << "killed at " << n << ", the agent at " << m;
        ASSERT_EQ(in_use(c, 0).bytes, pages.used());
        ASSERT_TRUE(change(c, its, pages.used(), all, all));
      }
    }
  }
  EXPECT_GT(kills, 40);
}

TEST(Kill, during_an_export_leaves_its_entry_complete_or_absent) {
  constexpr uint64_t before = 0x1111'2222'3333'4444, mine = 0x5555'6666'7777'8888;
  bool died = true;
  int whole = 0, absent = 0;
  for (int n = 0; died; ++n) {
    const SharedMemory pages;
    Exports& table = pages.report->exports;
    publish(table, *pages.control, neighbour, before);
    died = killed_at(n, [&](KillAt stop) { publish(table, *pages.control, victim, mine, stop); });
    pages.control->processes[victim] = {};
    (origin_of(table, *pages.control, mine) == Origin::own ? whole : absent)++;
    EXPECT_EQ(origin_of(table, *pages.control, before), Origin::own);
    unsigned entries = 0;
    for (const auto& set : table.word)
      for (const auto& word : set) entries += word.load() != 0;
    EXPECT_EQ(entries, n == 0 ? 1u : 2u);
  }
  EXPECT_EQ(absent, 1);
  EXPECT_EQ(whole, 2) << "killed after the store, and not killed at all";
}

}  // namespace
}  // namespace carve::shm
