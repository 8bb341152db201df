#include "controller/api/controller_routes.h"

#include <gmock/gmock.h>

#include "controller/api/testing/controller_api.h"
#include "objects/service_object.h"
#include "wire/api/json.h"
#include "wire/api/problem.h"

namespace carve::controller {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ControllerRoutes, an_applied_document_creates_an_object_of_its_caller) {
  Api api;
  const auto applied = api.ask(user(1000), "POST", "/v1/documents", service);
  ASSERT_EQ(applied.status, 201u) << body(applied);
  EXPECT_THAT(body(applied), HasSubstr(R"("action":"created")"));
  EXPECT_THAT(body(api.ask(user(1000), "POST", "/v1/documents", service)),
              HasSubstr(R"("action":"unchanged")"));
  const auto shown = api.ask(user(1000), "GET", "/v1/services/a");
  EXPECT_THAT(body(shown), HasSubstr(R"("account":"user1000")"));
  EXPECT_THAT(body(shown), HasSubstr(R"("ownerUid":1000)"));
  EXPECT_THAT(body(shown), HasSubstr("secret"));
  const char* const of_another_account = R"({"metadata":{"account":"other"}})";
  EXPECT_THAT(body(api.ask(user(0), "PATCH", "/v1/services/a", of_another_account)),
              HasSubstr("account 'user1000' pays for service a, and this cannot be changed"));
  EXPECT_EQ(api.ask(user(1000), "DELETE", "/v1/services/a").status, 200u);
  EXPECT_TRUE(api.objects.find({.name = "a"})->is_ending);
  EXPECT_EQ(api.ask(user(1000), "POST", "/v1/documents", service).status, 409u);
}

TEST(ControllerRoutes, a_change_must_have_the_version_that_the_caller_read) {
  Api api;
  ASSERT_EQ(api.ask(user(0), "POST", "/v1/documents", service).status, 201u);
  http::Headers stale, present, wrong;
  stale.add("If-Match", "\"99\"");
  present.add("If-Match", fmt::format("\"{}\"", api.objects.find({.name = "a"})->version));
  wrong.add("If-Match", "x");
  const char* patch = R"({"spec":{"replicas":3}})";
  EXPECT_EQ(api.ask(user(0), "PATCH", "/v1/services/a", patch, stale).status, 412u);
  EXPECT_EQ(api.ask(user(0), "PATCH", "/v1/services/a", patch, wrong).status, 400u);
  EXPECT_EQ(api.ask(user(0), "PATCH", "/v1/services/a", patch, present).status, 200u);
  EXPECT_THAT(api.objects.find({.name = "a"})->spec.json(), HasSubstr(R"("replicas":3)"));
}

TEST(ControllerRoutes, every_verb_is_rejected_if_the_objects_version_differs) {
  Api api;
  const char* eas = R"({"metadata":{"name":"a"},"containers":[{"command":"serve"}]})";
  const char* queue = R"({"apiVersion":"carve.dev/v1","kind":"Queue","metadata":{"name":"a"},"spec":{}})";
  ASSERT_EQ(api.ask(user(0), "POST", "/v1/documents", eas).status, 201u);
  ASSERT_EQ(api.ask(user(0), "POST", "/v1/documents", queue).status, 201u);
  api.views.kept_revisions = {{.number = 1, .spec = "{}"}, {.number = 2, .spec = "{}"}};
  http::Headers stale, present;
  stale.add("If-Match", "\"99\"");
  const auto before = api.objects.version();
  const std::tuple<const char*, const char*, const char*> rows[] = {
      {"POST", "/v1/services/a/stop", ""},
      {"POST", "/v1/services/a/start", ""},
      {"POST", "/v1/services/a/restart", ""},
      {"POST", "/v1/services/a/undo", ""},
      {"POST", "/v1/services/a/modify", R"({"changes":["metadata.instance=2"]})"},
      {"DELETE", "/v1/services/a", ""},
      {"DELETE", "/v1/queues/a", ""}};
  for (const auto& [method, target, text] : rows) {
    const auto refused = api.ask(user(0), method, target, text, stale);
    EXPECT_EQ(refused.status, 412u) << method << " " << target;
    EXPECT_THAT(body(refused), HasSubstr("carve:stale")) << method << " " << target;
  }
  EXPECT_EQ(api.objects.version(), before) << "nothing was changed";
  present.add("If-Match", fmt::format("\"{}\"", api.objects.find({.name = "a"})->version));
  EXPECT_EQ(api.ask(user(0), "DELETE", "/v1/services/a", "", present).status, 200u);
}

TEST(ControllerRoutes, invalid_documents_are_rejected_with_all_their_errors_and_none_is_stored) {
  Api api;
  const std::string two = std::string(service) + "\n---\n" + R"({"kind":"Service","spec":{"replcas":1}})";
  const auto refused = api.ask(user(0), "POST", "/v1/documents", two);
  EXPECT_EQ(refused.status, 422u);
  EXPECT_THAT(body(refused), HasSubstr("carve:invalid"));
  EXPECT_THAT(body(refused), HasSubstr("spec.replcas: unknown field"));
  EXPECT_TRUE(api.objects.list(objects::Kind::service).empty());
  EXPECT_EQ(api.ask(user(0), "POST", "/v1/documents?dryRun=true", service).status, 200u);
  EXPECT_TRUE(api.objects.list(objects::Kind::service).empty());
  for (const char* query : {"dialect=x", "nothing=1", "dryRun=%GG", "dialect=eas&dialect=eas"})
    EXPECT_EQ(api.ask(user(0), "POST", std::string("/v1/documents?") + query, service).status, 400u) << query;
  EXPECT_EQ(api.ask(user(0), "GET", "/v1/services/b").status, 404u);
  EXPECT_EQ(api.ask(user(0), "PATCH", "/v1/services/b", "{}").status, 404u);
}

TEST(ControllerRoutes, an_operator_may_change_a_users_service_but_not_the_programs_it_runs) {
  Api api;
  ASSERT_EQ(api.ask(user(1000), "POST", "/v1/documents", service).status, 201u);
  const char* run = R"({"spec":{"run":{"command":["other"]}}})";
  const auto refused = api.ask(user(0), "PATCH", "/v1/services/a", run);
  EXPECT_EQ(refused.status, 403u);
  EXPECT_THAT(body(refused), HasSubstr("run as user user1000, so only this user may change what they run"));
  EXPECT_EQ(api.ask(user(0), "PATCH", "/v1/services/a", R"({"spec":{"gpu":{"memory":"5GiB"}}})").status,
            200u);
  EXPECT_EQ(api.ask(user(1000), "PATCH", "/v1/services/a", run).status, 200u);
  EXPECT_EQ(api.objects.find({.name = "a"})->owner_uid, 1000u);
}

TEST(ControllerRoutes, objects_whose_programs_could_not_be_started_are_rejected_early) {
  Api api;
  api.views.refused_uid = 0;
  for (const bool dry : {true, false}) {
    const auto refused =
        api.ask(user(0), "POST", dry ? "/v1/documents?dryRun=true" : "/v1/documents", service);
    EXPECT_EQ(refused.status, 409u);
    EXPECT_THAT(body(refused), HasSubstr("no program of it"));
  }
  EXPECT_EQ(api.ask(user(1000), "POST", "/v1/documents", service).status, 201u);
  EXPECT_EQ(api.ask(user(0), "PATCH", "/v1/services/a", R"({"spec":{"replicas":2}})").status, 200u)
      << "it is the program of another user";
}

TEST(ControllerRoutes, an_application_has_the_same_routes_as_a_service) {
  Api api;
  const char* document = R"({"apiVersion":"carve.dev/v1","kind":"Application","metadata":{"name":"w"},
    "spec":{"gpu":{"type":"mGPU","memory":4096,"compute":0.30},"run":{"command":["serve"]}}})";
  ASSERT_EQ(api.ask(user(1000), "POST", "/v1/documents", document).status, 201u);
  EXPECT_THAT(body(api.ask(user(1000), "GET", "/v1/applications")), HasSubstr(R"("compute":"0.30")"));
  EXPECT_THAT(body(api.ask(user(1000), "GET", "/v1/services")), HasSubstr(R"("items":[])"));
  EXPECT_EQ(api.ask(user(1000), "GET", "/v1/services/w").status, 404u);
  const ObjectKey key{.kind = objects::Kind::application, .name = "w"};
  EXPECT_EQ(api.ask(user(1000), "PATCH", "/v1/applications/w", R"({"spec":{"replicas":3}})").status, 200u);
  EXPECT_EQ(api.ask(user(1000), "POST", "/v1/applications/w/stop").status, 200u);
  EXPECT_THAT(api.objects.find(key)->spec.json(), HasSubstr(R"("stopped":true)"));
  EXPECT_THAT(api.objects.find(key)->spec.json(), HasSubstr(R"("replicas":3)"));
  EXPECT_EQ(api.ask(user(1000), "POST", "/v1/applications/w/restart").status, 200u);
  EXPECT_THAT(api.objects.find(key)->spec.json(), HasSubstr(R"("restartedAt":"1970-01-01T00:00:00)"));
  EXPECT_EQ(api.ask(user(1001), "POST", "/v1/applications/w/restart").status, 403u);
  const auto clash = api.ask(user(1000), "POST", "/v1/documents",
                             R"({"apiVersion":"carve.dev/v1","kind":"Service","metadata":{"name":"w"},
                                 "spec":{"run":{"command":["serve"]}}})");
  EXPECT_EQ(clash.status, 409u);
  EXPECT_THAT(body(clash), HasSubstr("already has the application w"));
}

TEST(ControllerRoutes, two_documents_of_one_object_are_rejected) {
  Api api;
  const auto refused =
      api.ask(user(0), "POST", "/v1/documents", std::string(service) + "\n---\n" + std::string(service));
  EXPECT_EQ(refused.status, 400u);
  EXPECT_THAT(body(refused), HasSubstr("two documents describe service a; remove one of them"));
  EXPECT_TRUE(api.objects.list(objects::Kind::service).empty());
}

TEST(ControllerRoutes, a_dry_run_is_rejected_like_the_change_itself) {
  Api api;
  const std::string two = std::string(service) + "\n---\n" + std::string(service);
  const auto twice = api.ask(user(0), "POST", "/v1/documents?dryRun=true", two);
  EXPECT_EQ(twice.status, 400u);
  EXPECT_THAT(body(twice), HasSubstr("two documents describe service a; remove one of them"));
  for (size_t i = 0; i < max_objects_of_kind; ++i)
    ASSERT_TRUE(api.objects.add({.key = {.name = fmt::format("n{}", i)}}));
  const auto over = api.ask(user(0), "POST", "/v1/documents?dryRun=true", service);
  EXPECT_EQ(over.status, 429u);
  EXPECT_THAT(body(over), HasSubstr("the limit is 256; delete one first"));
}

// Neither one account nor one user with several accounts can use up the objects of a kind.
TEST(ControllerRoutes, an_account_has_a_quota_and_operators_have_a_reserve) {
  Api api;
  const auto fill = [&](size_t from, size_t to, uint32_t uid, const std::string& account) {
    for (size_t i = from; i < to; ++i)
      ASSERT_TRUE(api.objects.add({.key = {.name = fmt::format("n{}", i)},
                                   .account = account,
                                   .uid = fmt::format("u{}", i),
                                   .owner_uid = uid}));
  };
  fill(0, 63, 1000, "user1000");
  const auto post = [&](uint32_t uid, const char* name) {
    std::string document = service;
    document.replace(document.find("\"a\""), 3, fmt::format("\"{}\"", name));
    return api.ask(user(uid), "POST", "/v1/documents", document);
  };
  ASSERT_EQ(post(1000, "last").status, 201u);
  const auto over = post(1000, "over");
  EXPECT_EQ(over.status, 429u);
  EXPECT_THAT(body(over),
              HasSubstr("account 'user1000' has 64 services, and its quota is 64; delete one first"));
  EXPECT_EQ(post(1000, "last").status, 201u) << "existing objects can still be changed";
  EXPECT_EQ(post(1001, "other").status, 201u);
  EXPECT_EQ(post(0, "operators").status, 201u);
  ASSERT_TRUE(api.objects.remove({.name = "n0"}));
  EXPECT_EQ(post(1000, "again").status, 201u);
  for (uint32_t uid = 2000; api.objects.count(objects::Kind::service) < 240; ++uid) {
    const size_t at = 1000 + api.objects.count(objects::Kind::service);
    fill(at, at + 1, uid, fmt::format("user{}", uid));
  }
  const auto reserved = post(3000, "late");
  EXPECT_EQ(reserved.status, 429u);
  EXPECT_THAT(body(reserved), HasSubstr("the last 16 of 256 are reserved for operators"));
  EXPECT_EQ(post(0, "more").status, 201u);
}

// With a store that may be slow, a change is carried out in a thread, and reads are not.
TEST(ControllerRoutes, a_change_is_made_in_a_thread_if_the_store_may_be_slow) {
  Prepared views;
  JournalFake journal;
  JournaledRegistry objects{journal, {}, 0};
  TokenBook tokens{journal, {}};
  std::vector<AuditLine> audited;
  std::function<std::function<http::Response()>()> waiting;
  ControllerRoutes routes{
      {.views = views,
       .audit = [&](const AuditLine& line) { audited.push_back(line); },
       .objects = objects,
       .tokens = tokens,
       .change_objects =
           [&](const std::string& of, std::function<std::function<http::Response()>()> work) {
             EXPECT_EQ(of, "uid 1000");
             waiting = std::move(work);
             return http::Response{.content = http::LaterContent{}};
           }}};
  const auto ask = [&](const std::string& method, const std::string& target, const std::string& text = "") {
    return routes.answer(request_of(method, target, text, {}), user(1000));
  };
  EXPECT_TRUE(std::holds_alternative<http::LaterContent>(ask("POST", "/v1/documents", service).content));
  EXPECT_EQ(objects.count(objects::Kind::service), 0u);
  EXPECT_TRUE(audited.empty());
  ASSERT_TRUE(waiting);
  const auto finish = waiting();
  EXPECT_EQ(objects.count(objects::Kind::service), 1u);
  EXPECT_TRUE(audited.empty()) << "the audit log is written on the loop";
  EXPECT_EQ(finish().status, 201u);
  ASSERT_EQ(audited.size(), 1u);
  EXPECT_EQ(audited[0].change, "POST /v1/documents");
  waiting = nullptr;
  EXPECT_EQ(ask("GET", "/v1/services/a").status, 200u);
  EXPECT_EQ(ask("POST", "/v1/tokens", "{}").status, 403u);
  EXPECT_FALSE(waiting) << "tokens are not objects";
}

// A large document is parsed in a thread; then its route is called again.
TEST(ControllerRoutes, a_large_document_is_parsed_later) {
  Prepared views;
  JournalFake journal;
  JournaledRegistry objects{journal, {}, 0};
  TokenBook tokens{journal, {}};
  std::vector<AuditLine> audited;
  std::string key;
  std::function<std::function<http::Response()>()> waiting;
  ControllerRoutes routes{
      {.views = views,
       .audit = [&](const AuditLine& line) { audited.push_back(line); },
       .objects = objects,
       .tokens = tokens,
       .read_documents =
           [&](const std::string& of, std::function<std::function<http::Response()>()> work) {
             key = of;
             waiting = std::move(work);
             return http::Response{.content = http::LaterContent{}};
           }}};
  std::string large = service;
  large.insert(large.find("\"secret\"") + 1, std::string(max_inline_document_bytes, 'x'));
  const auto ask = [&](const std::string& method, const std::string& target, const std::string& text) {
    waiting = nullptr;
    return routes.answer(request_of(method, target, text, {}), user(1000));
  };
  EXPECT_TRUE(std::holds_alternative<http::LaterContent>(ask("POST", "/v1/documents", large).content));
  ASSERT_TRUE(waiting);
  EXPECT_EQ(key, "uid 1000");
  EXPECT_TRUE(audited.empty());
  const auto created = waiting()();
  EXPECT_EQ(created.status, 201u) << body(created);
  ASSERT_EQ(audited.size(), 1u);
  EXPECT_EQ(audited[0].status, 201u);
  // A patch is parsed as the complete document that results; if the object changes in the meantime, the
  // caller retries.
  EXPECT_TRUE(std::holds_alternative<http::LaterContent>(
      ask("PATCH", "/v1/services/a", R"({"spec":{"replicas":3}})").content));
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting()().status, 200u);
  EXPECT_THAT(objects.find({.name = "a"})->spec.json(), HasSubstr(R"("replicas":3)"));
  ask("PATCH", "/v1/services/a", R"({"spec":{"replicas":4}})");
  ASSERT_TRUE(waiting);
  const auto second = waiting();
  ASSERT_TRUE(objects.update(
      {.name = "a"}, [](Object& o) -> Outcome<void> { return o.labels["x"] = "y", Outcome<void>(); }));
  const auto refused = second();
  EXPECT_EQ(refused.status, 409u) << body(refused);
  // The same applies to a document of a kind that the path names.
  EXPECT_TRUE(std::holds_alternative<http::LaterContent>(ask("PUT", "/v1/queues/q", large).content));
  EXPECT_FALSE(std::holds_alternative<http::LaterContent>(ask("POST", "/v1/documents", "{}").content));
}

TEST(ControllerRoutes, an_unchanged_document_does_not_restart_replicas_again) {
  Api api;
  ASSERT_EQ(api.ask(user(0), "POST", "/v1/documents", service).status, 201u);
  ASSERT_EQ(api.ask(user(0), "POST", "/v1/services/a/restart").status, 200u);
  const auto generation = api.objects.find({.name = "a"})->generation;
  EXPECT_THAT(body(api.ask(user(0), "POST", "/v1/documents", service)), HasSubstr(R"("action":"unchanged")"));
  EXPECT_EQ(api.objects.find({.name = "a"})->generation, generation);
}

TEST(ControllerRoutes, fields_set_by_a_verb_are_kept_if_the_document_cannot_contain_them) {
  const std::tuple<const char*, const char*> documents[] = {
      {"a", R"({"metadata":{"name":"a"},"containers":[{"command":"serve"}]})"},
      {"b", R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"b"},
               "spec":{"template":{"spec":{"containers":[{"command":["serve"]}]}}}})"}};
  for (const auto& [name, document] : documents) {
    Api api;
    const std::string target = std::string("/v1/services/") + name;
    ASSERT_EQ(api.ask(user(0), "POST", "/v1/documents", document).status, 201u);
    ASSERT_EQ(api.ask(user(0), "PATCH", target,
                      R"({"spec":{"autoscale":{"min":1,"max":3,"metric":"gpuUtilization","target":5}}})")
                  .status,
              200u);
    ASSERT_EQ(api.ask(user(0), "POST", target + "/stop").status, 200u);
    ASSERT_EQ(api.ask(user(0), "POST", "/v1/documents", document).status, 201u);
    EXPECT_THAT(api.objects.find({.name = name})->spec.json(), HasSubstr(R"("stopped":true)"));
    EXPECT_THAT(api.objects.find({.name = name})->spec.json(), HasSubstr(R"("autoscale":{"min":1,"max":3)"));
  }
}

TEST(ControllerRoutes, a_modified_document_keeps_the_number_of_replicas_unless_it_changes_it) {
  Api api;
  ASSERT_EQ(api.ask(user(0), "POST", "/v1/documents",
                    R"({"metadata":{"name":"a","instance":2},"containers":[{"command":"serve"}]})")
                .status,
            201u);
  ASSERT_EQ(api.ask(user(0), "PATCH", "/v1/services/a", R"({"spec":{"replicas":5}})").status, 200u);
  const auto modify = [&](const char* change) {
    const std::string text = fmt::format(R"({{"changes":["{}"]}})", change);
    EXPECT_EQ(api.ask(user(0), "POST", "/v1/services/a/modify", text).status, 200u);
    return api.objects.find({.name = "a"})->spec.json();
  };
  EXPECT_THAT(modify("metadata.cpu=1"), HasSubstr(R"("replicas":5)"));
  EXPECT_THAT(modify("metadata.instance=3"), HasSubstr(R"("replicas":3)"));
}

TEST(ControllerRoutes, a_document_is_modified_only_in_the_version_that_the_caller_knows) {
  Api api;
  ASSERT_EQ(api.ask(user(0), "POST", "/v1/documents",
                    R"({"metadata":{"name":"a","instance":2},"containers":[{"command":"serve"}]})")
                .status,
            201u);
  const uint64_t version = api.objects.find({.name = "a"})->version;
  const auto modify = [&](uint64_t known, const char* change) {
    http::Headers headers;
    headers.add("If-Match", fmt::format("\"{}\"", known));
    return api
        .ask(user(0), "POST", "/v1/services/a/modify", fmt::format(R"({{"changes":["{}"]}})", change),
             headers)
        .status;
  };
  EXPECT_EQ(modify(version, "metadata.instance=3"), 200u);
  EXPECT_EQ(modify(version, "metadata.instance=4"), 412u) << "another caller was first";
  EXPECT_THAT(api.objects.find({.name = "a"})->spec.json(), HasSubstr(R"("replicas":3)"));
}

TEST(ControllerRoutes, the_paying_account_of_an_object_is_immutable) {
  Api api;
  const auto paid_by = [](const char* account) {
    return fmt::format(R"({{"apiVersion":"carve.dev/v1","kind":"Service",
      "metadata":{{"name":"a","account":"{}"}},"spec":{{"run":{{"command":["serve"]}}}}}})",
                       account);
  };
  ASSERT_EQ(api.ask(user(0), "POST", "/v1/documents", paid_by("research")).status, 201u);
  ASSERT_EQ(api.ask(user(0), "POST", "/v1/documents", paid_by("")).status, 201u)
      << "the account can be left out";
  ASSERT_EQ(api.ask(user(0), "POST", "/v1/documents", paid_by("research")).status, 201u);
  const auto refused = api.ask(user(0), "POST", "/v1/documents", paid_by("sales"));
  EXPECT_EQ(refused.status, 409u);
  EXPECT_THAT(
      body(refused),
      HasSubstr(
          "metadata.account: 'sales': account 'research' pays for service a, and this cannot be changed"));
  EXPECT_EQ(api.objects.find({.name = "a"})->account, "research");
}

TEST(ControllerRoutes, pai_eas_names_that_map_to_the_same_name_do_not_replace_each_other) {
  Api api;
  const auto named = [](const char* name) {
    return fmt::format(R"({{"metadata":{{"name":"{}"}},"containers":[{{"command":"serve"}}]}})", name);
  };
  ASSERT_EQ(api.ask(user(0), "POST", "/v1/documents", named("my_model")).status, 201u);
  const auto refused = api.ask(user(0), "POST", "/v1/documents", named("My_Model"));
  EXPECT_EQ(refused.status, 409u);
  EXPECT_THAT(body(refused),
              HasSubstr("'My_Model' becomes my-model here, which is already the name of service 'my_model'"));
  const auto renamed =
      api.ask(user(0), "POST", "/v1/services/my-model/modify", R"({"changes":["metadata.name=other"]})");
  EXPECT_EQ(renamed.status, 400u);
  EXPECT_EQ(api.objects.list(objects::Kind::service).size(), 1u);
}

TEST(ControllerRoutes, a_file_changes_only_the_named_pai_eas_service) {
  Api api;
  const auto document = [](const char* name, int cores) {
    return fmt::format(
        R"({{"name":"{}","metadata":{{"instance":1,"cpu":{},"rpc":{{}}}},"containers":[{{"script":"s"}}]}})",
        name, cores);
  };
  const auto modify = [&](const std::string& text) {
    return api.ask(user(0), "POST", "/v1/services/svc-a/modify", api::write(api::EasChanges{{}, text}));
  };
  const auto made = api.ask(user(0), "POST", "/v1/documents?create=true", document("svc_a", 2));
  ASSERT_EQ(made.status, 201u) << body(made);
  const auto again = api.ask(user(0), "POST", "/v1/documents?create=true", document("svc_a", 3));
  EXPECT_EQ(again.status, 409u);
  EXPECT_THAT(body(again), HasSubstr("metadata.name: 'svc-a': "));
  const auto other = modify(document("svc_b", 3));
  EXPECT_EQ(other.status, 400u);
  EXPECT_THAT(body(other), HasSubstr("metadata.name: 'svc_b': the name differs from service"));
  EXPECT_EQ(api.objects.list(objects::Kind::service).size(), 1u);
  EXPECT_THAT(api.objects.find({.name = "svc-a"})->spec.json(), HasSubstr(R"("request":"2")"));
  const auto whole = modify(document("svc_a", 4));
  EXPECT_EQ(whole.status, 200u) << body(whole);
  EXPECT_THAT(body(whole), HasSubstr("metadata.rpc has no effect")) << "the warnings are in the answer";
  EXPECT_THAT(api.objects.find({.name = "svc-a"})->spec.json(), HasSubstr(R"("request":"4")"));
  const auto fragment = modify(R"({"metadata":{"cpu":5}})");
  EXPECT_EQ(fragment.status, 200u) << body(fragment);
  EXPECT_THAT(api.objects.find({.name = "svc-a"})->spec.json(), HasSubstr(R"("request":"5")"))
      << "the service runs the same script";
}

TEST(ControllerRoutes, undo_restores_the_fields_of_a_revision_and_keeps_the_number_of_replicas) {
  Api api;
  ASSERT_EQ(api.ask(user(1000), "POST", "/v1/documents", service).status, 201u);
  const std::string first = api.objects.find({.name = "a"})->spec.json();
  ASSERT_EQ(api.ask(user(1000), "PATCH", "/v1/services/a",
                    R"({"spec":{"replicas":5,"gpu":{"memory":"6GiB"},"update":{"maxSurge":2}}})")
                .status,
            200u);
  const std::string second = api.objects.find({.name = "a"})->spec.json();
  EXPECT_EQ(api.ask(user(1000), "POST", "/v1/services/a/undo").status, 409u) << "nothing was started yet";
  api.views.kept_revisions = {{.number = 4, .created_ns = 1, .spec = first, .form = first},
                              {.number = 5, .created_ns = 2, .spec = second, .form = second}};
  const auto unknown = api.ask(user(1000), "POST", "/v1/services/a/undo", R"({"revision":3})");
  EXPECT_EQ(unknown.status, 404u);
  EXPECT_THAT(body(unknown), HasSubstr("service a has no revision 3; it has 4, 5"));
  EXPECT_EQ(api.ask(user(1001), "POST", "/v1/services/a/undo").status, 403u);
  ASSERT_EQ(api.ask(user(1000), "POST", "/v1/services/a/undo").status, 200u);
  const auto spec =
      api::read<objects::ServiceSpec>(api.objects.find({.name = "a"})->spec.json(), api::Reading::strict);
  ASSERT_TRUE(spec) << spec.error();
  EXPECT_EQ(spec->gpu->memory, "4GiB");
  EXPECT_EQ(spec->replicas, 5u);
  EXPECT_EQ(spec->update.max_surge, 2u);
  const auto listed = api.ask(user(1000), "GET", "/v1/services/a/revisions");
  EXPECT_THAT(body(listed), HasSubstr(R"("revision":4)"));
  EXPECT_THAT(body(listed), Not(HasSubstr("secret")));
}

TEST(ControllerRoutes, a_revision_is_shown_as_the_object_that_it_was) {
  Api api;
  ASSERT_EQ(api.ask(user(1000), "POST", "/v1/documents", service).status, 201u);
  const std::string first = api.objects.find({.name = "a"})->spec.json();
  const char* const patch = R"({"spec":{"gpu":{"memory":"6GiB"}}})";
  ASSERT_EQ(api.ask(user(1000), "PATCH", "/v1/services/a", patch).status, 200u);
  api.views.kept_revisions = {{.number = 4, .spec = first}, {.number = 5, .spec = "{}"}};
  const auto shown = body(api.ask(user(1000), "GET", "/v1/services/a/revisions/4"));
  EXPECT_THAT(shown, HasSubstr(R"("memory":"4GiB")"));
  EXPECT_THAT(shown, HasSubstr("secret"));
  EXPECT_THAT(shown, HasSubstr(R"("status":{})"));
  EXPECT_THAT(body(api.ask(user(1001), "GET", "/v1/services/a/revisions/4")), Not(HasSubstr("secret")));
  for (const char* number : {"6", "04", "x", "-4"}) {
    const auto refused = api.ask(user(1000), "GET", std::string("/v1/services/a/revisions/") + number);
    EXPECT_EQ(refused.status, 404u) << number;
    EXPECT_THAT(body(refused), HasSubstr(fmt::format("service a has no revision {}; it has 4, 5", number)));
  }
}

TEST(ControllerRoutes, a_difference_shows_the_object_before_and_after_the_change) {
  Api api;
  const auto asked = [&](uint32_t uid, const std::string& document) {
    const auto response = api.ask(user(uid), "POST", "/v1/documents?diff=true", document);
    EXPECT_EQ(response.status, 200u) << body(response);
    return api::read<api::AppliedList>(body(response), api::Reading::strict).value().items.at(0);
  };
  const api::AppliedObject added = asked(1000, service);
  EXPECT_FALSE(added.before);
  EXPECT_THAT(added.after.value_or(""), HasSubstr(R"("memory":"4GiB")"));
  EXPECT_TRUE(api.objects.list(objects::Kind::service).empty()) << "it is a dry run";
  ASSERT_EQ(api.ask(user(1000), "POST", "/v1/documents", service).status, 201u);
  std::string changed = service;
  changed.replace(changed.find("4GiB"), 4, "6GiB");
  const api::AppliedObject of_change = asked(1000, changed);
  EXPECT_THAT(of_change.before.value_or(""), HasSubstr(R"("memory":"4GiB")"));
  EXPECT_THAT(of_change.after.value_or(""), HasSubstr(R"("memory":"6GiB")"));
  EXPECT_THAT(api.objects.find({.name = "a"})->spec.json(), HasSubstr("4GiB"));
  const api::AppliedObject same = asked(1000, service);
  EXPECT_EQ(same.before, same.after);
  EXPECT_EQ(api.ask(user(1001), "POST", "/v1/documents?diff=true", service).status, 403u);
}

TEST(ControllerRoutes, documents_are_rendered_as_manifests_that_kubectl_can_apply) {
  Api api;
  const auto rendered = api.ask(user(1000), "POST", "/v1/render", service);
  ASSERT_EQ(rendered.status, 200u) << body(rendered);
  const auto manifests = api::read<api::Rendered>(body(rendered), api::Reading::strict);
  ASSERT_TRUE(manifests) << manifests.error();
  EXPECT_THAT(manifests->manifests, HasSubstr("kind: \"Deployment\""));
  EXPECT_THAT(api.objects.list(objects::Kind::service), testing::IsEmpty());
  ASSERT_EQ(api.ask(user(1000), "POST", "/v1/documents", manifests->manifests).status, 201u);
  const auto kept =
      api::read<objects::ServiceSpec>(api.objects.find({.name = "a"})->spec.json(), api::Reading::strict);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->gpu->memory, "4096MiB");
  const auto pool =
      api.ask(user(0), "POST", "/v1/render",
              R"({"apiVersion":"carve.dev/v1","kind":"Pool","metadata":{"name":"p"},"spec":{}})");
  EXPECT_EQ(pool.status, 422u);
  EXPECT_THAT(body(pool), HasSubstr("Pool 'p' cannot be rendered"));
}

TEST(ControllerRoutes, a_dry_run_explains_which_rule_translated_each_field) {
  Api api;
  const auto explained = api.ask(user(1000), "POST", "/v1/documents?explain=true", service);
  ASSERT_EQ(explained.status, 200u) << body(explained);
  EXPECT_THAT(body(explained), HasSubstr(R"("becomes":"slice.memory_bytes","result":"4294967296")"));
  EXPECT_THAT(body(explained), HasSubstr(R"("action":"checked")"));
  EXPECT_THAT(api.objects.list(objects::Kind::service), testing::IsEmpty());
  EXPECT_THAT(body(api.ask(user(1000), "POST", "/v1/documents?dryRun=true", service)),
              HasSubstr(R"("translation":[])"));
}

TEST(ControllerRoutes, the_controller_serves_its_own_description) {
  const auto version =
      api::read<api::ControllerVersion>(body(asked(user(0), "GET", "/v1/version")), api::Reading::strict);
  ASSERT_TRUE(version) << version.error();
  EXPECT_EQ(version->program, "carve-controller");
}

TEST(ControllerRoutes, an_unknown_path_is_reported_with_the_known_ones) {
  EXPECT_EQ(asked(user(0), "GET", "/v1/slices").status, 404u);
  EXPECT_THAT(
      body(asked(user(0), "GET", "/v1/slices")),
      HasSubstr("there is no path /v1/slices; the controller serves /v1/version, /v1/nodes, /v1/nodes/{}, "));
  EXPECT_EQ(asked(user(0), "DELETE", "/v1/nodes").status, 405u);
  EXPECT_THAT(body(asked(user(0), "DELETE", "/v1/nodes")),
              HasSubstr("/v1/nodes does not support the method DELETE"));
  const size_t shortest = body(asked(user(0), "GET", "/x")).size();  // Contains the list of paths.
  EXPECT_LE(body(asked(user(0), "GET", "/" + std::string(5000, 'x'))).size(), shortest + 200);
}

TEST(ControllerRoutes, bytes_that_are_not_a_request_are_rejected_with_the_servers_status) {
  EXPECT_EQ(refuse_bytes(431, "x").status, 431u);
  EXPECT_THAT(body(refuse_bytes(400, "x")), HasSubstr("carve:invalid-argument"));
  EXPECT_THAT(body(refuse_bytes(429, "x")), HasSubstr("carve:resource-exhausted"));
}

TEST(ControllerRoutes, a_list_is_returned_in_pages) {
  Api api;
  for (const char* name : {"a", "b", "c"}) {
    std::string text = service;
    text.replace(text.find(R"("name":"a")"), 10, fmt::format(R"("name":"{}")", name));
    ASSERT_EQ(api.ask(user(1000), "POST", "/v1/services", text).status, 201u);
  }
  const std::string first = body(api.ask(user(1000), "GET", "/v1/services?limit=2"));
  EXPECT_THAT(first, HasSubstr(R"("name":"b")"));
  EXPECT_THAT(first, Not(HasSubstr(R"("name":"c")")));
  EXPECT_THAT(first, HasSubstr(R"("resourceVersion":"3")"));
  const size_t begin = first.rfind(R"("continue":")") + 12;
  const std::string next = first.substr(begin, first.find('"', begin) - begin);
  ASSERT_FALSE(next.empty());
  const std::string second = body(api.ask(user(1000), "GET", "/v1/services?limit=2&continue=" + next));
  EXPECT_THAT(second, HasSubstr(R"("name":"c")"));
  EXPECT_THAT(second, HasSubstr(R"("continue":"")"));
  EXPECT_EQ(api.ask(user(1000), "GET", "/v1/applications?continue=" + next).status, 400u);
}

}  // namespace
}  // namespace carve::controller
