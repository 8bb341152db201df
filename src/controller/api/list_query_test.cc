#include "controller/api/list_query.h"

#include <gmock/gmock.h>

namespace carve::controller {
namespace {

constexpr auto service_kind = objects::Kind::service;
using Objects = std::vector<ObjectRegistry::Pointer>;

// Returns objects for "NAMESPACE/NAME" texts, in the order of the registry.
Objects objects_named(const std::vector<std::string>& names) {
  Objects out;
  for (const std::string& name : names) {
    const size_t slash = name.find('/');
    out.push_back(
        std::make_shared<Object>(Object{.key = {service_kind, name.substr(0, slash), name.substr(slash + 1)},
                                        .labels = {{"n", name.substr(slash + 1)}}}));
  }
  return out;
}

std::string names(const ListPage& page) {
  std::string out;
  for (const auto& object : page.objects) out += object->key.namespace_ + "/" + object->key.name + " ";
  return out;
}

ListQuery query(const std::string& text) {
  const auto parsed = parse_list_query(text, service_kind);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return *parsed;
}

TEST(ListQuery, returns_every_object_on_exactly_one_page) {
  const Objects all = objects_named({"a/x", "a/y", "b/a", "b/x", "c/a"});
  std::string seen, next;
  unsigned pages = 0;
  do {
    const ListPage page = page_of(all, query("limit=2&continue=" + next));
    seen += names(page);
    next = page.next;
    ++pages;
  } while (!next.empty());
  EXPECT_EQ(seen, "a/x a/y b/a b/x c/a ");
  EXPECT_EQ(pages, 3u);
  EXPECT_EQ(page_of(all, query("limit=5")).next, "") << "no page is empty";
  EXPECT_EQ(names(page_of(all, query(""))), seen);
}

TEST(ListQuery, shows_an_object_that_stays_once_while_others_come_and_go) {
  const ListPage first = page_of(objects_named({"a/b", "a/d", "a/f"}), query("limit=2"));
  ASSERT_EQ(names(first), "a/b a/d ");
  const ListQuery second = query("limit=2&continue=" + first.next);
  EXPECT_EQ(names(page_of(objects_named({"a/f"}), second)), "a/f ")
      << "the object after which the page continues is gone";
  EXPECT_EQ(names(page_of(objects_named({"a/a", "a/b", "a/c", "a/d", "a/e", "a/f"}), second)), "a/e a/f ");
  EXPECT_EQ(names(page_of({}, second)), "");
}

TEST(ListQuery, counts_only_selected_objects_against_the_limit) {
  const Objects all = objects_named({"a/a", "a/b", "b/a", "b/b"});
  const ListPage page = page_of(all, query("limit=1&labelSelector=n%3Db"));
  EXPECT_EQ(names(page), "a/b ");
  const ListPage last = page_of(all, query("limit=1&labelSelector=n%3Db&continue=" + page.next));
  EXPECT_EQ(names(last), "b/b ");
  EXPECT_EQ(last.next, "");
}

TEST(ListQuery, rejects_an_invalid_query) {
  for (const char* text :
       {"limit=0", "limit=501", "limit=", "limit=-1", "limit=1x", "limit=99999999999999999999", "continue=x",
        "continue=7", "continue=zz", "continue=00", "continue=61", "labelSelector=,", "other=1",
        "limit=1&limit=2", "continue=+1"}) {
    const auto parsed = parse_list_query(text, service_kind);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, FailureKind::invalid_argument);
  }
  EXPECT_FALSE(parse_list_query("continue=" + std::string(100'000, 'a'), service_kind));
}

TEST(ListQuery, rejects_the_token_of_a_list_of_another_kind) {
  const ListPage page = page_of(objects_named({"a/b", "a/d"}), query("limit=1"));
  EXPECT_FALSE(parse_list_query("continue=" + page.next, objects::Kind::application));
}

}  // namespace
}  // namespace carve::controller
