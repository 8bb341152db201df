// The controller's API over objects in memory, for tests of its routes.
#pragma once

#include <gtest/gtest.h>

#include "controller/api/testing/routes_fake.h"
#include "controller/api/testing/views_fake.h"

namespace carve::controller {

inline constexpr uint32_t operators[] = {0};

// Views in which restricted data contains the word "secret".
struct Prepared : ViewsFake {
  Prepared() {
    now = 1'000;
    known = {{.record = {.name = "secret-a", .socket = "/secret"},
              .reachability = Reachability::reachable,
              .report = {.devices = {{.index = 1, .usable_bytes = 22, .free_bytes = 11}},
                         .slices = std::vector<api::Slice>(3)}},
             {.record = {.name = "secret-b"},
              .reachability = Reachability::unreachable,
              .problem = "no agent listens at /secret"}};
  }
  api::ControllerVersion version() const override {
    return {.program = "carve-controller", .version = "1.2.3", .pid = 7, .state = "/secret", .started_ns = 5};
  }
  LogReader logs(const Object&, const LogQuery&) const override {
    return [] { return std::string("secret line\n"); };
  }
  http::EventStream follow_logs(const Object&, const LogQuery&) override {
    return {.first = {{.id = "", .data = "secret line"}}, .subscribe = {}};
  }
  Outcome<std::vector<Revision>> revisions(const std::string&) const override { return kept_revisions; }
  std::optional<uint32_t> uid_of(const std::string& account) const override {
    return account == "root" ? 0 : ViewsFake::uid_of(account);
  }
  std::string metrics(api::MetricsFormat, const http::Caller&) const override {
    return "carve_service_sessions 1\n";
  }

  std::vector<Revision> kept_revisions;
};
// A controller's API over objects in memory.
struct Api {
  Prepared views;
  JournalFake journal;
  JournaledRegistry objects{journal, {}, 0};
  TokenBook tokens{journal, {}};
  std::vector<AuditLine> audited;
  ControllerRoutes routes{{.views = views,
                           .audit = [this](const AuditLine& line) { audited.push_back(line); },
                           .objects = objects,
                           .tokens = tokens}};

  http::Response ask(const http::Caller& caller, const std::string& method, const std::string& target,
                     const std::string& body = "", http::Headers headers = {}) {
    if (!caller.address().empty() && headers.count("Host") == 0) headers.add("Host", "127.0.0.1:8470");
    return routes.answer(request_of(method, target, body, std::move(headers)), caller);
  }
};

inline http::Response asked(const http::Caller& caller, std::string method, std::string path) {
  return Api().ask(caller, method, path);
}

inline std::string body(const http::Response& response) { return std::get<std::string>(response.content); }

inline http::Caller user(uint32_t uid) { return http::Caller::user(uid, {5, 1}, operators); }

inline constexpr const char* service =
    R"({"apiVersion":"carve.dev/v1","kind":"Service","metadata":{"name":"a"},
  "spec":{"replicas":2,"gpu":{"memory":"4GiB"},"run":{"command":["serve"],"env":{"TOKEN":"secret"}}}})";

}  // namespace carve::controller
