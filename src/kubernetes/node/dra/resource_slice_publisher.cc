#include "kubernetes/node/dra/resource_slice_publisher.h"

#include <algorithm>
#include <utility>

#include "kubernetes/node/rules/resource_claim.h"
#include "os/log.h"

namespace carve::kubernetes::node {

using api::Json;
using kubernetes::ApiAnswer;
using kubernetes::ObjectMeta;

ResourceSlicePublisher::ResourceSlicePublisher(kubernetes::ApiClient& client, std::string node, uint64_t seed)
    : client_(client),
      name_(resource_slice_name(node)),
      random_(seed),
      watch_(client,
             {.path = resource_slices_path,
              .label_selector = "",
              .field_selector = fmt::format("spec.nodeName={},spec.driver={}", node, dra_driver)},
             {.replaced = [this](const kubernetes::ObjectsByUid&) { check(); },
              .changed = [this](const ObjectMeta&) { check(); },
              .removed = [this](const ObjectMeta&) { check(); }},
             seed) {}

void ResourceSlicePublisher::want(Json wanted) {
  if (wanted_ == wanted) return;
  wanted_ = std::move(wanted);
  check();
}

void ResourceSlicePublisher::hold() { is_held_ = true; }

void ResourceSlicePublisher::release() {
  is_held_ = false;
  check();
}

void ResourceSlicePublisher::check() {
  is_stale_ = true;
  step();
}

void ResourceSlicePublisher::step() {
  if (call_ || timer_ || is_held_ || !is_stale_ || !wanted_) return;
  is_stale_ = false;
  call_ = client_.send({.target = target()}, [this](const ApiAnswer& answer) { was_read(answer); });
}

void ResourceSlicePublisher::was_read(const ApiAnswer& answer) {
  call_.reset();
  if (answer.status == 404) {
    retry_ns_ = kubernetes::first_retry_ns;
    if (!wanted_->is_null()) return create();
    return step();
  }
  if (!answer.is_success()) return failed(answer);
  retry_ns_ = kubernetes::first_retry_ns;
  const auto stored = api::parse(answer.body, api::Decimals::as_doubles, kubernetes::max_json_depth);
  if (!stored)
    return failed(
        {.status = answer.status, .body = "", .problem = "its text is not JSON: " + stored.error()});
  if (wanted_->is_null()) return remove();
  update(*stored);
}

void ResourceSlicePublisher::create() {
  const kubernetes::Nanoseconds now = client_.now();
  if (now < created_at_ + slice_create_pause_ns) return pause(created_at_ + slice_create_pause_ns - now);
  created_at_ = now;
  Json object = *wanted_;
  object["spec"]["pool"]["generation"] = ++last_generation_;
  write({.method = "POST", .target = resource_slices_path, .body = object.dump()});
}

void ResourceSlicePublisher::update(const Json& stored) {
  const Json next = updated_resource_slice(stored, *wanted_, last_generation_);
  if (next.is_null()) {
    last_generation_ = stored["spec"]["pool"]["generation"].get<uint64_t>();
    last_problem_.clear();
    return step();
  }
  const kubernetes::Nanoseconds now = client_.now();
  if (now < updated_at_ + slice_update_pause_ns) return pause(updated_at_ + slice_update_pause_ns - now);
  updated_at_ = now;
  last_generation_ = next["spec"]["pool"]["generation"].get<uint64_t>();
  write({.method = "PUT", .target = target(), .body = next.dump()});
}

void ResourceSlicePublisher::remove() { write({.method = "DELETE", .target = target(), .body = ""}); }

void ResourceSlicePublisher::write(kubernetes::ApiRequest request) {
  ++writes_;
  call_ = client_.send(std::move(request), [this](const ApiAnswer& answer) {
    call_.reset();
    is_stale_ = true;
    // Another write came first, or an earlier attempt of this one was carried out. The next read shows which.
    if (!answer.is_success() && answer.status != 409 && answer.status != 404) return failed(answer);
    step();
  });
}

void ResourceSlicePublisher::pause(kubernetes::Nanoseconds length) {
  timer_ = client_.after(length, [this] {
    timer_.reset();
    check();
  });
}

// Waits a random time, because after an outage all nodes of the cluster try again.
void ResourceSlicePublisher::failed(const ApiAnswer& answer) {
  const std::string problem = fmt::format("the ResourceSlice {} cannot be kept: {}", name_, answer.problem);
  if (problem != last_problem_) os::log::warning("{}", problem);
  last_problem_ = problem;
  const kubernetes::Nanoseconds most =
      answer.retry_after_seconds != 0 ? answer.retry_after_seconds * kubernetes::second_ns : retry_ns_;
  retry_ns_ = std::min(retry_ns_ * 2, kubernetes::max_retry_ns);
  pause(most / 2 + std::uniform_int_distribution<kubernetes::Nanoseconds>(0, most / 2)(random_));
}

}  // namespace carve::kubernetes::node
