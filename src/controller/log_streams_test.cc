#include "controller/log_streams.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "controller/objects/testing/journals.h"
#include "objects/job_object.h"
#include "runner/supervisor_state.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Lines final : http::Stream {
  std::vector<std::string> all;
  size_t queued = 0;  // Bytes that the test has not taken yet.
  bool is_complete = false;
  bool has_ended = false;
  bool send(const http::StreamEvent& e) override {
    if (e.type == objects::log_end_event) return is_complete = true;
    all.push_back(e.data);
    queued += e.data.size();
    return true;
  }
  size_t queued_bytes() const override { return queued; }
  void end() override { has_ended = true; }
  std::vector<std::string> taken() {
    queued = 0;
    return std::exchange(all, {});
  }
};

// An object with replicas whose logs the test writes.
struct Followable {
  std::string folder = [] {
    char name[] = "/tmp/carve-follow-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  NoJournal journal;
  JournaledRegistry objects{journal, {}, 0};
  LogStreams streams{objects, [this](const std::string& slice) { return folder + "/" + slice; }};
  Lines lines;
  std::shared_ptr<void> subscription;

  Followable() { EXPECT_TRUE(objects.add({.key = {.name = "a"}, .uid = "u"})); }
  ~Followable() {
    subscription.reset();
    std::filesystem::remove_all(folder);
  }
  void replicas(std::initializer_list<const char*> slices) {
    std::string list;
    uint32_t index = 0;
    for (const char* slice : slices)
      list += fmt::format(R"({}{{"index":{},"slice":"{}"}})", list.empty() ? "" : ",", index++, slice);
    ASSERT_TRUE(objects.update({.name = "a"}, [&](Object& o) -> Outcome<void> {
      o.status = TypedJson::read<objects::ServiceStatus>(fmt::format(R"({{"replicaList":[{}]}})", list));
      return {};
    }));
  }
  void write(const std::string& slice, const std::string& text) {
    std::filesystem::create_directories(folder + "/" + slice);
    auto log = runner::LogWriter::open(folder + "/" + slice + "/" + runner::log_folder_name);
    ASSERT_TRUE(log) << log.error().message;
    log->write(runner::LogStream::standard_output, text, 1'000'000'000);
  }
  void follow(const LogQuery& query = {}) {
    auto begun = streams.begin(*objects.find({.name = "a"}), query);
    for (const auto& e : begun.first) lines.all.push_back(e.data);
    subscription = begun.subscribe(lines);
  }
};

TEST(LogStreams, send_lines_as_they_are_written) {
  Followable f;
  f.replicas({"a-1-0"});
  f.write("a-1-0", "one\ntwo\n");
  f.follow({.tail = 1});
  EXPECT_THAT(f.lines.taken(), ElementsAre("two"));
  f.write("a-1-0", "three\n");
  f.streams.tick();
  EXPECT_THAT(f.lines.taken(), ElementsAre("three"));
  f.streams.tick();
  EXPECT_THAT(f.lines.taken(), IsEmpty());
}

TEST(LogStreams, begin_each_line_with_its_time_if_requested) {
  Followable f;
  f.replicas({"a-1-0", "a-1-1"});
  f.write("a-1-0", "one\n");
  f.follow({.has_times = true});
  EXPECT_THAT(f.lines.taken(), ElementsAre("a-1-0 1970-01-01T00:00:01.000000000Z one"));
}

TEST(LogStreams, follow_a_later_replica_from_its_first_line) {
  Followable f;
  f.replicas({});
  f.follow();
  f.replicas({"a-1-0", "a-1-1"});
  f.write("a-1-0", "one\n");
  f.write("a-1-1", "two\n");
  f.streams.tick();
  EXPECT_THAT(f.lines.taken(), ElementsAre("a-1-0 one", "a-1-1 two"));
  Followable other;
  other.replicas({"a-1-0", "a-1-1"});
  other.write("a-1-0", "one\n");
  other.write("a-1-1", "two\n");
  other.follow({.replica = 1});
  EXPECT_THAT(other.lines.taken(), ElementsAre("a-1-1 two"));
}

// Writes 40 MiB of numbered lines of a program that has ended before they are read.
void write_much(Followable& f) {
  auto log = runner::LogWriter::open(f.folder + "/a-1-0/" + runner::log_folder_name);
  ASSERT_TRUE(log) << log.error().message;
  const std::string filling(8000, 'x');
  for (int i = 0; i < 5000; ++i)
    log->write(runner::LogStream::standard_output, fmt::format("{} {}\n", i, filling), i);
}

TEST(LogStreams, send_each_line_once_to_a_slow_caller) {
  Followable f;
  f.replicas({"a-1-0"});
  f.write("a-1-0", "begin\n");
  f.follow();
  f.lines.taken();
  write_much(f);
  int next = 0;
  for (int ticks = 0; next < 5000; ++ticks) {
    ASSERT_LT(ticks, 1000);
    f.streams.tick();
    ASSERT_LE(f.lines.queued, max_queued_log_bytes + runner::max_log_line_bytes);
    if (ticks % 3 != 0) continue;  // The caller takes nothing now.
    for (const std::string& text : f.lines.taken()) ASSERT_EQ(std::stoi(text), next++);
  }
}

TEST(LogStreams, end_after_the_last_line_of_a_job) {
  Followable f;
  const ObjectKey key{.kind = objects::Kind::job, .name = "j"};
  ASSERT_TRUE(f.objects.add({.key = key, .uid = "u"}));
  const auto set = [&](const std::string& status) {
    ASSERT_TRUE(f.objects.update(key, [&](Object& o) -> Outcome<void> {
      o.status = TypedJson::read<objects::JobStatus>(status);
      return {};
    }));
  };
  const std::string pods = R"("pods":[{"role":"task","index":0,"attempt":1,"program":"a-1-0"}])";
  set("{" + pods + "}");
  auto begun = f.streams.begin(*f.objects.find(key), {.plain = true});
  f.subscription = begun.subscribe(f.lines);
  std::filesystem::create_directories(f.folder + "/a-1-0");
  write_much(f);
  set(R"({"phase":"Succeeded","finishedAt":"2026-11-26T08:00:00Z",)" + pods + "}");
  std::vector<std::string> got;
  for (int ticks = 0; !f.lines.has_ended; ++ticks) {
    ASSERT_LT(ticks, 1000);
    f.streams.tick();
    std::ranges::move(f.lines.taken(), std::back_inserter(got));
  }
  EXPECT_TRUE(f.lines.is_complete);
  ASSERT_EQ(got.size(), 5000u);
  EXPECT_EQ(std::stoi(got.back()), 4999);
}

TEST(LogStreams, end_when_the_callers_token_becomes_invalid_and_send_nothing_more) {
  Followable f;
  f.replicas({"a-1-0"});
  f.write("a-1-0", "one\n");
  bool is_valid = true;
  f.follow({.may_continue = [&] { return is_valid; }});
  EXPECT_THAT(f.lines.taken(), ElementsAre("one"));
  f.streams.tick();
  EXPECT_FALSE(f.lines.has_ended);
  is_valid = false;
  f.write("a-1-0", "two\n");
  f.streams.tick();
  EXPECT_TRUE(f.lines.has_ended);
  EXPECT_FALSE(f.lines.is_complete);
  EXPECT_THAT(f.lines.taken(), IsEmpty());
}

TEST(LogStreams, end_with_their_object) {
  Followable f;
  f.follow();
  f.streams.tick();
  EXPECT_FALSE(f.lines.has_ended);
  ASSERT_TRUE(f.objects.remove({.name = "a"}));
  f.streams.tick();
  EXPECT_TRUE(f.lines.has_ended);
}

}  // namespace
}  // namespace carve::controller
