#include "kubernetes/node/node_publisher.h"

#include <algorithm>
#include <utility>

#include "os/log.h"

namespace carve::kubernetes::node {

using kubernetes::ApiAnswer;
using kubernetes::ObjectMeta;

NodePublisher::NodePublisher(kubernetes::ApiClient& client, Settings settings, Effects effects)
    : client_(client),
      settings_(std::move(settings)),
      effects_(std::move(effects)),
      static_pods_(client_, [this](const EventNote& event) { effects_.note(event); }),
      nodes_(client_,
             {.path = "/api/v1/nodes",
              .label_selector = "",
              .field_selector = "metadata.name=" + settings_.node},
             {.replaced =
                  [this](const kubernetes::ObjectsByUid&) {
                    is_stale_ = true;
                    step();
                  },
              .changed =
                  [this](const ObjectMeta&) {
                    is_stale_ = true;
                    step();
                  },
              .removed = [this](const ObjectMeta&) { seen_.reset(); }},
             settings_.seed),
      pods_(client_,
            {.path = "/api/v1/pods",
             .label_selector = "",
             .field_selector = fmt::format("spec.nodeName={},status.phase!=Succeeded,status.phase!=Failed",
                                           settings_.node)},
            {.replaced =
                 [this] {
                   step();
                   static_pods_.look(pods_.by_uid());
                 },
             .changed =
                 [this](const ObjectMeta&) {
                   step();
                   static_pods_.look(pods_.by_uid());
                   update_slices();
                 },
             .removed =
                 [this](const ObjectMeta& pod) {
                   asked_.erase(pod.name_space + "/" + pod.name);
                   step();
                   release_orphans();
                 }},
            settings_.seed + 1) {}

void NodePublisher::agent_reported(Result<api::AgentReport, std::string> report) {
  if (report) {
    agent_ = std::move(*report);
    agent_problem_.clear();
  } else {
    if (agent_problem_ != report.error()) os::log::warning("{}", report.error());
    agent_.reset();
    agent_problem_ = report.error();
    sent_change_.reset();
  }
  find_drift();
  if (agent_ && seen_) tell(events_.of_report(*agent_, about_node()));
  step();
  release_orphans();
  update_slices();
}

AboutObject NodePublisher::about_node() const {
  return {.kind = "Node", .name_space = "", .name = settings_.node, .uid = seen_->meta.uid};
}

void NodePublisher::tell(const std::vector<EventNote>& notes) {
  for (const EventNote& note : notes) effects_.note(note);
}

// If only some of the pods were known, the slices of the others would look like drift.
void NodePublisher::find_drift() {
  if (!agent_ || !seen_ || !pods_.is_complete()) return;
  if (!std::exchange(is_drift_known_, true)) {
    const auto written = seen_->meta.annotations.find(kubernetes::ledger_annotation);
    if (written != seen_->meta.annotations.end())
      if (const auto ledger = kubernetes::read_ledger(written->second)) lasting_.assume(*ledger);
  }
  drift_ = lasting_.lasting(node::find_drift(agent_->slices, settings_.node, pods_.by_uid()), client_.now());
}

void NodePublisher::runtime_found(const RuntimeCapability& runtime) {
  runtime_ = runtime;
  step();
}

void NodePublisher::step() {
  if (call_ || retry_ || !nodes_.is_complete()) return;
  if (is_stale_) return read_node();
  const bool is_agent_known = agent_ || !agent_problem_.empty();
  if (!seen_ || !is_agent_known || !runtime_ || !pods_.is_complete()) return;
  if (!is_drift_known_) find_drift();
  const auto desired = read_label_settings(seen_->meta.labels);
  change_agent(desired);
  use_way(desired);
  kubernetes::NodeLedger ledger = drift_;
  if (agent_) ledger.results = find_results(agent_->slices, settings_.node, pods_.by_uid(), updates_);
  const Advertisement wanted = advertise({.node = settings_.node,
                                          .agent = agent_,
                                          .agent_problem = agent_problem_,
                                          .desired = desired,
                                          .runtime = *runtime_,
                                          .host = settings_.host,
                                          .pods = pods_.by_uid(),
                                          .has_other_plugin = seen_->has_other_plugin(),
                                          .dra_problem = dra_problem_,
                                          .drift = std::move(ledger),
                                          .reader = reader()});
  publish(desired, wanted);
  tell(events_.of_conditions(wanted.conditions, about_node()));
  // Patch the annotation first, so that a reader of the totals finds the devices.
  if (auto body = metadata_patch(*seen_, wanted))
    return patch(node_target(), kubernetes::merge_patch_type, *body);
  if (auto body = status_patch(*seen_, wanted, effects_.now_text()))
    patch(node_target() + "/status", kubernetes::strategic_merge_patch_type, *body);
}

std::optional<kubernetes::NodeReader> NodePublisher::reader() const {
  if (!settings_.reader) return std::nullopt;
  os::TcpAddress address = settings_.reader->address;
  if (address.host == "0.0.0.0" || address.host == "::") address.host = seen_->internal_ip;
  if (address.host.empty()) return std::nullopt;
  return kubernetes::NodeReader{.address = os::text(address), .key = settings_.reader->key};
}

void NodePublisher::change_agent(const Result<LabelSettings, std::string>& desired) {
  if (!agent_ || !desired) return;
  const auto change = agent_change(*agent_, *desired);
  const kubernetes::Nanoseconds now = client_.now();
  if (!change || (change == sent_change_ && now - change_sent_at_ < same_update_ns)) return;
  if (change != sent_change_) change_refusal_.clear();
  sent_change_ = change;
  change_sent_at_ = now;
  effects_.change_agent(*change);
}

void NodePublisher::use_way(const Result<LabelSettings, std::string>& desired) {
  if (!agent_ || !desired) return;
  const Way way = way_of(*agent_, *desired).effective;
  if (way == way_) return;
  way_ = way;
  effects_.use_way(way);
}

// While the agent is away, the object stays as it is, because a restart of the agent takes a second.
void NodePublisher::publish(const Result<LabelSettings, std::string>& desired, const Advertisement& wanted) {
  if (way_ != Way::dra || !agent_ || !desired) return;
  if (!wanted.label) return effects_.publish(nullptr);
  ResourceSliceInput in{.node = settings_.node,
                        .node_uid = seen_->meta.uid,
                        .agent = *agent_,
                        .mode = wanted.devices.mode.effective,
                        .ends_pods = settings_.ends_pods};
  const auto cordon = seen_->meta.annotations.find(kubernetes::cordon_annotation);
  if (cordon != seen_->meta.annotations.end()) in.cordoned = read_cordon(cordon->second);
  if (way_of(*agent_, *desired).pending()) in.blocked = "setting-pending";
  if (!agent_->node.grants_refused.empty()) in.blocked = "grants-refused";
  effects_.publish(resource_slice(in));
}

void NodePublisher::dra_registered(const std::string& problem) {
  if (std::exchange(dra_problem_, problem) != problem) step();
}

void NodePublisher::change_refused(const std::string& refusal) {
  if (std::exchange(change_refusal_, refusal) == refusal) return;
  os::log::warning("the agent rejected a setting: {}", refusal);
  if (seen_)
    effects_.note({.about = about_node(),
                   .severity = Severity::warning,
                   .reason = "CarveRefused",
                   .action = "ChangeNode",
                   .note = refusal});
}

void NodePublisher::read_node() {
  is_stale_ = false;
  call_ = client_.send({.target = node_target()}, [this](const ApiAnswer& answer) { node_read(answer); });
}

void NodePublisher::node_read(const ApiAnswer& answer) {
  call_.reset();
  if (!answer.is_success()) return failed("the node cannot be read", answer);
  auto seen = read_node_object(answer.body);
  if (!seen) return failed("the node cannot be read", {.status = answer.status, .problem = seen.error()});
  seen_ = std::move(*seen);
  retry_ns_ = kubernetes::first_retry_ns;
  last_problem_.clear();
  step();
}

void NodePublisher::patch(std::string target, std::string type, std::string body) {
  const kubernetes::Nanoseconds now = client_.now();
  if (body == last_patch_ && now - last_patch_at_ < same_patch_ns) {
    retry_ = client_.after(last_patch_at_ + same_patch_ns - now, [this] {
      retry_.reset();
      is_stale_ = true;
      step();
    });
    return;
  }
  last_patch_ = body;
  last_patch_at_ = now;
  call_ = client_.send({.method = "PATCH",
                        .target = std::move(target),
                        .body = std::move(body),
                        .content_type = std::move(type)},
                       [this](const ApiAnswer& answer) {
                         call_.reset();
                         is_stale_ = true;
                         if (!answer.is_success()) return failed("the node cannot be patched", answer);
                         step();
                       });
}

void NodePublisher::failed(const std::string& what, const ApiAnswer& answer) {
  is_stale_ = true;
  const std::string problem = fmt::format("{}: {}", what, answer.problem);
  if (problem != last_problem_) os::log::warning("{}", problem);
  last_problem_ = problem;
  const kubernetes::Nanoseconds wait =
      answer.retry_after_seconds != 0 ? answer.retry_after_seconds * kubernetes::second_ns : retry_ns_;
  retry_ns_ = std::min(retry_ns_ * 2, kubernetes::max_retry_ns);
  retry_ = client_.after(wait, [this] {
    retry_.reset();
    step();
  });
}

void NodePublisher::update_slices() {
  if (!agent_ || !pods_.is_complete()) return;
  const kubernetes::Nanoseconds now = client_.now();
  UpdateAnswers wanted;
  for (const SliceUpdate& update : find_updates(agent_->slices, settings_.node, pods_.by_uid())) {
    const auto known = updates_.find(update.slice);
    const bool is_same = known != updates_.end() && known->second.update == update;
    wanted[update.slice] = is_same ? known->second : UpdateAnswer{.update = update, .refusal = {}};
    if (is_same && now - updated_at_[update.slice] < same_update_ns) continue;
    updated_at_[update.slice] = now;
    effects_.update(update);
  }
  updates_ = std::move(wanted);
  std::erase_if(updated_at_, [&](const auto& entry) { return !updates_.contains(entry.first); });
}

void NodePublisher::updated(const SliceUpdate& update, const std::string& refusal) {
  const auto known = updates_.find(update.slice);
  if (known == updates_.end() || known->second.update != update) return;
  known->second.refusal = refusal;
  step();
}

KubeletFigures NodePublisher::figures() const {
  const auto lag = [&](const kubernetes::ObjectWatch& objects) {
    return objects.heard_at() == 0 ? 0 : static_cast<uint64_t>(client_.now() - objects.heard_at());
  };
  const auto relists = [](const kubernetes::ObjectWatch& objects) {
    return std::max<uint64_t>(objects.lists(), 1) - 1;
  };
  KubeletFigures out{.version = "",
                     .watch_lag_ns = {{"nodes", lag(nodes_)}, {"pods", lag(pods_)}},
                     .relists = {{"nodes", relists(nodes_)}, {"pods", relists(pods_)}},
                     .pending = {}};
  if (!seen_) return out;
  const auto annotation = seen_->meta.annotations.find(kubernetes::devices_annotation);
  if (annotation == seen_->meta.annotations.end()) return out;
  if (auto devices = kubernetes::read_devices(annotation->second)) out.pending = pending_settings(*devices);
  return out;
}

void NodePublisher::release_orphans() {
  if (!agent_ || !pods_.is_complete()) return;
  for (const OrphanCandidate& orphan : find_orphans(agent_->slices, pods_.by_uid())) {
    if (orphans_.contains(orphan.slice)) continue;
    const std::string target =
        fmt::format("/api/v1/namespaces/{}/pods/{}", orphan.holder.namespace_, orphan.holder.name);
    orphans_[orphan.slice] = client_.send({.target = target}, [this, orphan](const ApiAnswer& answer) {
      orphans_.erase(orphan.slice);
      if (proves_gone(answer, orphan.holder)) effects_.release(orphan.slice);
    });
  }
}

NodePublisher::PodAnswer NodePublisher::copied_pod(const std::string& full_name,
                                                   const std::string& problem) const {
  for (const auto& [uid, meta] : pods_.by_uid())
    if (meta.name_space + "/" + meta.name == full_name)
      return std::optional(SeenPod{.meta = meta, .node = settings_.node, .is_over = false});
  if (const auto asked = asked_.find(full_name); asked != asked_.end()) return std::optional(asked->second);
  return tl::unexpected(fmt::format("pod {} cannot be read: {}", full_name, problem));
}

NodePublisher::PodAnswer NodePublisher::answered_pod(const std::string& full_name, const ApiAnswer& answer) {
  if (answer.status == 404) {
    asked_.erase(full_name);
    return std::optional<SeenPod>();
  }
  if (!answer.is_success()) return copied_pod(full_name, answer.problem);
  auto pod = read_pod_object(answer.body);
  if (!pod) return tl::unexpected(pod.error());
  if (asked_.size() >= max_asked_pods) asked_.clear();
  asked_[full_name] = *pod;
  return std::optional(std::move(*pod));
}

void NodePublisher::find_pod(const std::string& name_space, const std::string& name,
                             std::function<void(PodAnswer)> found) {
  const uint64_t question = ++next_question_;
  questions_[question] =
      client_.send({.target = fmt::format("/api/v1/namespaces/{}/pods/{}", name_space, name),
                    .deadline_ns = pod_patience_ns},
                   [this, question, full_name = name_space + "/" + name,
                    found = std::move(found)](const ApiAnswer& answer) {
                     const std::unique_ptr<kubernetes::ApiCall> ended = std::move(questions_[question]);
                     questions_.erase(question);
                     found(answered_pod(full_name, answer));
                   });
}

}  // namespace carve::kubernetes::node
