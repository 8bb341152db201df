// Any bytes to the controller's port, over the whole table of routes. The first byte selects the caller:
// without a token, a viewer, a user or an operator. The registry is in memory and contains a service with a
// secret variable, and a queue with a job that has a secret parameter and a Ray cluster that has a secret
// variable. Each answer must have a status and a body. A caller without the right must neither change an
// object or a token nor get a secret, unless its own request contains the same text, which a message may
// repeat.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "controller/api/controller_routes.h"
#include "controller/api/testing/routes_fake.h"
#include "controller/api/testing/views_fake.h"
#include "os/log.h"

namespace {

using namespace carve;
using namespace carve::controller;

constexpr const char* secret = "do-not-show-this";
const ObjectKey kept{objects::Kind::service, "default", "kept"};

struct FuzzedViews final : ViewsFake {
  FuzzedViews() { known = {{.record = {.name = "n1"}, .reachability = Reachability::reachable}}; }
  LogReader logs(const Object&, const LogQuery&) const override {
    return [] { return Outcome<std::string>(secret); };
  }
  http::EventStream follow_logs(const Object&, const LogQuery&) override {
    return {.first = {{.id = "", .data = secret}}, .subscribe = {}};
  }
  // Returns whether an agent got a request other than for data.
  bool changed_an_agent() const {
    return !ended.empty() || std::ranges::any_of(calls, [](const std::string& call) {
      return call.find(" GET ") == std::string::npos;
    });
  }
};

struct CountingJournal final : JournalFake {
  using JournalFake::remove;
  using JournalFake::write;
  Outcome<void> write(const Token&) override { return ++token_changes, Outcome<void>(); }
  Outcome<void> remove(const Token&) override { return ++token_changes, Outcome<void>(); }
  unsigned token_changes = 0;
};

struct FuzzedController {
  FuzzedViews views;
  CountingJournal journal;
  JournaledRegistry objects{journal, {}, 0};
  TokenBook tokens{journal, {}};
  ControllerRoutes routes{{.views = views,
                           .audit = [](const AuditLine&) {},
                           .objects = objects,
                           .tokens = tokens,
                           .node_actions = &views}};

  FuzzedController() {
    const std::string document = fmt::format(
        R"({{"apiVersion":"carve.dev/v1","kind":"Service","metadata":{{"name":"kept"}},"spec":{{"replicas":2,)"
        R"("run":{{"command":["serve"],"env":{{"TOKEN":"{}"}}}}}}}})",
        secret);
    const auto owner = http::Caller::user(2000, {5, 1}, {});
    post(document, owner);
    post(R"({"apiVersion":"carve.dev/v1","kind":"Queue","metadata":{"name":"q"},"spec":{}})",
         http::Caller::token("root", http::Role::operate));
    post(fmt::format(
             R"({{"apiVersion":"carve.dev/v1","kind":"Job","metadata":{{"name":"j"}},"spec":{{"queue":"q",)"
             R"("parameters":{{"spark.key":"{0}","serverless.custom.job.gpu.enabled":"true",)"
             R"("serverless.custom.job.task.gpus":"1","emr.serverless.mgpu.core":"30",)"
             R"("emr.serverless.mgpu.memory":"1000"}},"run":{{"command":["a"],"env":{{"T":"{0}"}}}}}}}})",
             secret),
         owner);
    post(
        fmt::format(R"({{"apiVersion":"carve.dev/v1","kind":"RayCluster","metadata":{{"name":"c"}},"spec":{{)"
                    R"("queue":"q","workers":[{{"mgpuCore":30,"mgpuMemory":4096}}],"engineHome":"/ray",)"
                    R"("env":{{"T":"{}"}}}}}})",
                    secret),
        owner);
    show_token({objects::Kind::ray_cluster, "default", "c"});
  }

  void post(const std::string& document, const http::Caller& caller) {
    const http::Request request{.method = "POST", .path = "/v1/documents", .query = "", .body = document};
    if (routes.answer(request, caller).status != 201) abort();
  }

  // Gives the object the status of a running cluster, whose dashboard token is also secret.
  void show_token(const ObjectKey& key) {
    const auto shown = objects.update(key, [](Object& object) -> Outcome<void> {
      object.status = objects::JobStatus{.phase = JobPhase::running, .dashboard_token = secret};
      return {};
    });
    if (!shown) abort();
  }
};

http::Caller caller_of(uint8_t byte) {
  switch (byte % 4) {
    case 0: return http::Caller::remote("127.0.0.1:5");
    case 1: return http::Caller::token("other", http::Role::viewer);
    case 2: return http::Caller::token("research", http::Role::user);
    default: return http::Caller::token("root", http::Role::operate);
  }
}

bool shows(std::string_view text, const http::Response& response) {
  if (const auto* body = std::get_if<std::string>(&response.content))
    return body->find(text) != std::string::npos;
  if (const auto* stream = std::get_if<http::EventStream>(&response.content))
    for (const http::StreamEvent& event : stream->first)
      if (event.data.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  static const bool is_quiet = os::log::set_level("error");
  if (!is_quiet) abort();
  FuzzedController controller;
  const http::Caller caller = caller_of(data[0]);
  const bool has_right = data[0] % 4 >= 2;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto repeats = [&](const http::Request& request) {  // The caller's own text, decoded or not.
    return input.find(secret) != input.npos || request.path.find(secret) != std::string::npos ||
           request.query.find(secret) != std::string::npos || request.body.find(secret) != std::string::npos;
  };
  const uint64_t version = controller.objects.version();
  const auto answer = [&](const http::Request& request) {
    http::Response response = controller.routes.answer(request, caller);
    if (response.status < 200 || response.status > 599) abort();
    if (!has_right && shows(secret, response) && !repeats(request)) abort();
    const bool changed = controller.objects.version() != version || controller.journal.token_changes != 0;
    if (!has_right && (changed || controller.views.changed_an_agent())) abort();
    if (request.method == "GET" && response.status == 200 && response.type.empty()) abort();
    return response;
  };
  http::Conversation conversation({.handle = answer, .refuse = refuse_bytes, .body_limit = body_limit}, 0);
  std::string_view left = input;
  while (!conversation.is_over() && !left.empty()) {
    const std::string_view bytes = left.substr(0, 4096);
    left.remove_prefix(bytes.size());
    conversation.receive(bytes, 0);
    for (std::string_view out; !(out = conversation.unsent()).empty();) conversation.sent(out.size(), 0);
    conversation.tick(0);
  }
  return 0;
}
