#include "controller/api/agent_routes.h"

#include "controller/api/planning.h"
#include "controller/api/query.h"
#include "controller/nodes/node_rules.h"
#include "controller/nodes/slice_forecast.h"
#include "core/request.h"
#include "wire/api/device.h"
#include "wire/api/slice.h"

namespace carve::controller {
namespace {

http::Response passed(AgentAnswer answer) { return {answer.status, answer.type, std::move(answer.body)}; }

bool is_success(const AgentAnswer& answer) { return answer.status / 100 == 2; }

// Returns the path on the agent: "/v1/slices/a" for "/v1/nodes/n1/slices/a", "/metrics" for
// "/v1/nodes/n1/metrics", and "/v1/events" for "/v1/nodes/n1/agent-events", which is separate from the node's
// own events.
std::string agent_path(const Call& call) {
  const std::string& path = call.request.path;
  const std::string rest = path.substr(path.find('/', std::string_view("/v1/nodes/").size()));
  if (rest == "/agent-events") return "/v1/events";
  return rest == "/metrics" ? rest : "/v1" + rest;
}

Outcome<AgentAnswer> ask(const Call& call, const AgentCall& wanted) {
  if (call.context.node_actions == nullptr)
    return failure(FailureKind::unavailable, "this controller has no agents");
  return call.context.node_actions->ask_agent(call.names[0], wanted);
}

// Forwards the caller's request to the agent unchanged.
Outcome<AgentAnswer> forward(const Call& call, std::initializer_list<const char*> parameters) {
  const auto query = parse_query(call.request.query, parameters);
  if (!query) return tl::unexpected(query.error());
  const std::string& text = call.request.query;
  return ask(call,
             {call.request.method, agent_path(call) + (text.empty() ? "" : "?" + text), call.request.body});
}

// Parses the agent's answer as a document.
template <class T>
Result<T, http::Response> read_answer(Outcome<AgentAnswer> answer) {
  if (!answer) return tl::unexpected(refuse(answer.error()));
  if (!is_success(*answer)) return tl::unexpected(passed(std::move(*answer)));
  auto read = api::read<T>(answer->body, api::Reading::lenient);
  if (!read)
    return tl::unexpected(
        refuse(FailureKind::unavailable, fmt::format("cannot read the agent's response: {}", read.error())));
  return std::move(*read);
}

bool may_see_slice(const http::Caller& caller, const api::Slice& slice) {
  return caller.may_see(slice.owner_uid, slice.account);
}

// Returns the slice that the path names if the caller may see it. Other callers get the same response as if
// it did not exist.
Result<api::Slice, http::Response> named_slice(const Call& call) {
  const std::string& name = call.names[1];
  const auto refuse_name = [&] {
    return tl::unexpected(refuse(
        FailureKind::not_found,
        fmt::format("there is no slice '{}' on node {}", name.substr(0, max_shown_bytes), call.names[0])));
  };
  if (!is_name(name)) return refuse_name();
  auto slice = read_answer<api::Slice>(ask(call, {"GET", "/v1/slices/" + name}));
  if (slice && !may_see_slice(call.caller, *slice)) return refuse_name();
  return slice;
}

// Returns the request with the caller as its owner and with the isolation of the node's mode.
Outcome<api::SliceRequest> own_request(const Call& call) {
  auto request = api::read<api::SliceRequest>(call.request.body, api::Reading::strict);
  if (!request) return failure(FailureKind::invalid_argument, "{}", request.error());
  const auto owner = owner_of(call, {.field = "account", .account = request->account});
  if (!owner) return tl::unexpected(owner.error());
  const uint32_t uid = request->owner_uid.value_or(owner->uid);
  if (uid != owner->uid && !call.caller.may_operate())
    return failure(FailureKind::permission_denied, "owner_uid: {} is not the uid of {}; leave owner_uid out",
                   uid, call.caller.text());
  if (request->lifetime == Lifetime::until_deleted && !call.caller.may_operate())
    return failure(FailureKind::permission_denied,
                   "lifetime: only operators may create slices for containers, because a container runtime "
                   "acts on them");
  request->owner_uid = uid;
  request->account = owner->account;
  const auto node = call.context.objects.find(node_key(call.names[0]));
  if (!node) return std::move(*request);
  const std::string pool_name = node_spec(*node).pool;
  const auto pool = call.context.objects.find(pool_key(pool_name));
  if (pool && pool_spec(*pool).best_effort == BestEffortRule::refuse && is_best_effort(request->amounts))
    return failure(FailureKind::failed_precondition, "{}", best_effort_problem(pool_name));
  Amounts& amounts = request->amounts;
  if (!amounts.isolation && !amounts.exclusive) amounts.isolation = isolation_of(*node);
  return std::move(*request);
}

http::Response ask_with_own_request(const Call& call) {
  const auto query = parse_query(call.request.query, {});
  if (!query) return refuse(query.error());
  const auto request = own_request(call);
  if (!request) return refuse(request.error());
  auto answer = ask(call, {"POST", agent_path(call), api::write(*request)});
  return answer ? passed(std::move(*answer)) : refuse(answer.error());
}

}  // namespace

http::Response see_agent(const Call& call) {
  auto answer = forward(call, {});
  return answer ? passed(std::move(*answer)) : refuse(answer.error());
}

http::Response list_agent_devices(const Call& call) {
  auto list = read_answer<api::DeviceList>(forward(call, {}));
  if (!list) return std::move(list.error());
  if (!call.caller.may_operate())
    for (api::Device& device : list->devices) device.unmanaged_processes.clear();
  return document(*list);
}

http::Response list_agent_slices(const Call& call) {
  auto list = read_answer<api::SliceList>(forward(call, {"all"}));
  if (!list) return std::move(list.error());
  std::erase_if(list->slices, [&](const api::Slice& slice) { return !may_see_slice(call.caller, slice); });
  return document(*list);
}

http::Response get_agent_slice(const Call& call) {
  auto slice = named_slice(call);
  return slice ? document(*slice) : std::move(slice.error());
}

http::Response create_agent_slice(const Call& call) { return ask_with_own_request(call); }

http::Response explain_on_agent(const Call& call) { return ask_with_own_request(call); }

http::Response change_agent_slice(const Call& call) {
  auto slice = named_slice(call);
  if (!slice) return std::move(slice.error());
  if (!call.caller.may_change(slice->owner_uid, slice->account) || !call.caller.may_create())
    return refuse(FailureKind::permission_denied,
                  fmt::format("slice {} can be changed only by its owner, by operators and with a token of "
                              "its account that has the role 'user'",
                              slice->name));
  auto answer = call.request.method == "PATCH" ? forward(call, {"dryRun"}) : forward(call, {});
  return answer ? passed(std::move(*answer)) : refuse(answer.error());
}

http::Response operate_agent(const Call& call) {
  if (!call.caller.may_operate())
    return refuse(FailureKind::permission_denied,
                  fmt::format("only operators may do this; {} is not an operator", call.caller.text()));
  auto answer = forward(call, {"devices", "seconds", "after"});
  return answer ? passed(std::move(*answer)) : refuse(answer.error());
}

}  // namespace carve::controller
