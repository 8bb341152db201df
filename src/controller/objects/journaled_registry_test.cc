#include "controller/objects/journaled_registry.h"

#include <gmock/gmock.h>

#include "objects/service_object.h"
#include "wire/api/json_value.h"

namespace carve::controller {
namespace {

using testing::HasSubstr;
using testing::Not;

struct JournalFake final : Journal {
  Outcome<void> write(std::span<const Object> objects) override {
    if (is_full) return failure(FailureKind::unavailable, "the disk is full");
    writes += static_cast<unsigned>(objects.size());
    return {};
  }
  Outcome<void> remove(const ObjectKey&, uint64_t) override { return {}; }
  bool is_full = false;
  unsigned writes = 0;
};

TypedJson spec_of(std::string json) { return TypedJson::read<objects::ServiceSpec>(std::move(json)); }

Object object(std::string name, std::string spec = "{}") {
  return {.key = {objects::Kind::service, "default", std::move(name)}, .spec = spec_of(std::move(spec))};
}

TEST(ObjectRegistry, assigns_each_change_the_next_version_and_each_new_spec_the_next_generation) {
  JournalFake journal;
  JournaledRegistry registry(journal, {}, 5);
  EXPECT_EQ((*registry.add(object("a")))->version, 6u);
  const ObjectKey key = object("a").key;
  const auto status = registry.update(key, [](Object& o) -> Outcome<void> {
    return o.status = TypedJson::read<objects::ServiceStatus>("{\"x\":1}"), Outcome<void>();
  });
  EXPECT_EQ((*status)->version, 7u);
  EXPECT_EQ((*status)->generation, 1u);
  const auto spec = registry.update(
      key, [](Object& o) -> Outcome<void> { return o.spec = spec_of("{\"y\":1}"), Outcome<void>(); });
  EXPECT_EQ((*spec)->generation, 2u);
  const unsigned writes = journal.writes;
  const auto same = registry.update(key, [](Object&) -> Outcome<void> { return {}; });
  EXPECT_EQ((*same)->version, 8u);
  EXPECT_EQ(journal.writes, writes) << "nothing is written if nothing changed";
}

TEST(ObjectRegistry, hides_a_change_that_was_not_written) {
  JournalFake journal;
  JournaledRegistry registry(journal, {}, 0);
  ASSERT_TRUE(registry.add(object("a")));
  journal.is_full = true;
  EXPECT_FALSE(registry.add(object("b")));
  EXPECT_EQ(registry.find(object("b").key), nullptr);
  EXPECT_FALSE(registry.update(
      object("a").key, [](Object& o) -> Outcome<void> { return o.spec = spec_of("[]"), Outcome<void>(); }));
  EXPECT_EQ(registry.find(object("a").key)->spec.json(), "{}");
  EXPECT_EQ(registry.version(), 1u);
}

TEST(ObjectRegistry, rejects_a_taken_name_an_old_version_and_too_many_objects) {
  JournalFake journal;
  JournaledRegistry registry(journal, {}, 0);
  ASSERT_TRUE(registry.add(object("a")));
  EXPECT_EQ(registry.add(object("a")).error().kind, FailureKind::already_exists);
  const auto edit = [](Object& o) -> Outcome<void> { return o.spec = spec_of("[]"), Outcome<void>(); };
  EXPECT_EQ(registry.update(object("a").key, edit, 7).error().kind, FailureKind::stale);
  EXPECT_EQ(registry.update(object("b").key, edit).error().kind, FailureKind::not_found);
  for (size_t i = 1; i < max_objects_of_kind; ++i) ASSERT_TRUE(registry.add(object(fmt::format("n{}", i))));
  EXPECT_EQ(registry.add(object("more")).error().kind, FailureKind::resource_exhausted);
}

TEST(ObjectRegistry, finds_a_name_in_any_namespace) {
  JournalFake journal;
  JournaledRegistry registry(journal, {}, 0);
  for (const auto& [space, name] : {std::pair{"a", "x"}, {"b", "x2"}, {"c", "y"}, {"c", "z"}}) {
    Object one = object(name);
    one.key.namespace_ = space;
    ASSERT_TRUE(registry.add(one));
  }
  EXPECT_EQ(registry.find_named(objects::Kind::service, "z")->key.namespace_, "c");
  EXPECT_EQ(registry.find_named(objects::Kind::service, "x")->key.namespace_, "a");
  EXPECT_EQ(registry.find_named(objects::Kind::service, "w"), nullptr);
  EXPECT_EQ(registry.find_named(objects::Kind::job, "x"), nullptr);
  EXPECT_EQ(registry.find_named(objects::Kind::application, "x"), nullptr);
}

TEST(ObjectRegistry, resumes_a_watch_within_the_kept_changes_and_fails_before_them) {
  JournalFake journal;
  JournaledRegistry registry(journal, {}, 100);
  unsigned notified = 0;
  registry.subscribe([&] { ++notified; });
  ASSERT_TRUE(registry.add(object("a")));
  for (size_t i = 0; i < max_kept_changes; ++i)
    ASSERT_TRUE(registry.update(object("a").key, [&](Object& o) -> Outcome<void> {
      return o.status = TypedJson::read<objects::ServiceStatus>(fmt::format("{}", i)), Outcome<void>();
    }));
  EXPECT_EQ(notified, max_kept_changes + 1);
  EXPECT_EQ(registry.changes_behind(100).error().kind, FailureKind::gone);
  EXPECT_EQ(registry.changes_behind(101)->size(), max_kept_changes);
  EXPECT_EQ(registry.changes_behind(registry.version())->size(), 0u);
  EXPECT_EQ(registry.changes_behind(registry.version() + 1).error().kind, FailureKind::invalid_argument);
  ASSERT_TRUE(registry.remove(object("a").key));
  EXPECT_EQ(registry.changes_behind(registry.version() - 1)->front().kind, ChangeKind::deleted);
}

TEST(ObjectRecord, hides_the_environment_in_its_document_on_request) {
  Object o = object("a", R"({"run":{"env":{"TOKEN":"secret"}},"source":{"document":"secret too"}})");
  o.created_ns = 1'795'443'215'066'000'000;
  EXPECT_THAT(document_of(o), HasSubstr("secret"));
  const std::string hidden = document_of(o, true);
  EXPECT_THAT(hidden, Not(HasSubstr("secret")));
  const auto json = api::parse(hidden);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["spec"]["run"]["env"]["TOKEN"], "(hidden)");
  EXPECT_EQ((*json)["metadata"]["createdAt"], "2026-11-23T14:13:35.066Z");
  EXPECT_EQ((*json)["apiVersion"], "carve.dev/v1");
}

}  // namespace
}  // namespace carve::controller
