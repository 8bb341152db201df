// A cluster with Kueue, under virtual time: a manager in memory that makes a Workload for each Job with a queue,
// admits a number of them in the order of their priorities, and lets their Jobs run. Objects without an owner are removed.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/kubernetes/kueue_objects.h"
#include "controller/kubernetes/made_kinds.h"
#include "controller/kubernetes/testing/cluster_scenario.h"
#include "core/utc.h"

namespace carve::controller {

struct KueueScenario : ClusterScenario {
  static constexpr const char* custom_queues = "/apis/carve.dev/v1/queues";
  static constexpr const char* custom_jobs = "/apis/carve.dev/v1/jobs";

  size_t slots = 1;  // Jobs that a queue admits at the same time.

  void install_kueue() { server.groups.insert(fmt::format("/apis/{}", kueue_version)); }
  void remove_kueue() {
    server.groups.clear();
    for (const char* kind : {batch_job, cluster_queue, local_queue, resource_flavor, priority_class,
                             kueue_cohort, kueue_workload})
      for (const json& one : all(kind)) remove(kind, one);
    server.add_fault({.target = "kueue.x-k8s.io/v1beta2/", .status = 404, .times = 1'000'000});
    server.end_watches();
  }

  void put_queue(const std::string& name, json spec) {
    put(custom_queues, "Queue", {{"name", name}}, std::move(spec));
  }
  void put_job(const std::string& name, json more = json::object(),
               const std::string& name_space = "default") {
    json spec = {{"queue", "train"}, {"run", {{"image", "i"}, {"command", {"train"}}}}};
    spec.update(more);
    put(custom_jobs, "Job", {{"name", name}, {"namespace", name_space}}, std::move(spec));
  }
  // Ends the Job as Kubernetes does: "Complete", "Failed".
  void end_job(const std::string& name, const std::string& type) {
    json job = *made(batch_job, name);
    job["status"]["conditions"] = json::array();
    job["status"]["conditions"].push_back({{"type", type},
                                           {"status", "True"},
                                           {"message", "as the test wants"},
                                           {"lastTransitionTime", text_utc(time.now())}});
    put(batch_job, job);
  }

  const json* made(const char* kind, const std::string& name, std::string name_space = "default") const {
    if (!made_kind(kind).has_namespace) name_space.clear();
    return server.find(path_of(made_kind(kind)), name_space, name);
  }
  std::vector<json> all(const char* kind) const { return server.all(path_of(made_kind(kind))); }
  const json* job(const std::string& name, const std::string& name_space = "default") const {
    return server.find(custom_jobs, name_space, name);
  }
  json job_status(const std::string& name, const char* member) const {
    const json* found = job(name);
    return found != nullptr && found->contains("status") ? (*found)["status"].value(member, json()) : json();
  }
  json queue_status(const std::string& name, const char* member) const {
    const json* found = server.find(custom_queues, "", name);
    return found != nullptr && found->contains("status") ? (*found)["status"].value(member, json()) : json();
  }

  void run_for(kubernetes::Nanoseconds length) {
    for (const kubernetes::Nanoseconds end = time.now() + length; time.now() < end;) {
      time.run_for(kubernetes::second_ns / 2);
      settle_kubernetes();
      if (!server.groups.empty()) settle_kueue();
      collect_garbage();
    }
  }

 private:
  void put(const char* kind, const json& object) { server.put(path_of(made_kind(kind)), object); }
  void remove(const char* kind, const json& object) {
    server.remove(path_of(made_kind(kind)), object["metadata"].value("namespace", ""),
                  object["metadata"]["name"]);
  }
  void put(const char* collection, const char* kind, json metadata, json spec) {
    json object = {
        {"apiVersion", "carve.dev/v1"}, {"kind", kind}, {"metadata", std::move(metadata)}, {"spec", spec}};
    const json& given = object["metadata"];
    if (const json* before = server.find(collection, given.value("namespace", ""), given["name"])) {
      object["metadata"] = (*before)["metadata"];
      if (before->contains("status")) object["status"] = (*before)["status"];
    }
    server.put(collection, object);
  }

  static bool has_ended(const json& job) {
    return job.contains("status") && job["status"].contains("conditions");
  }
  static json condition(const char* type, bool is_true, const std::string& message) {
    return {{"type", type},
            {"status", is_true ? "True" : "False"},
            {"reason", "r"},
            {"message", message},
            {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
  }

  void make_workload(const json& job) {
    const std::string name = "job-" + job["metadata"]["name"].get<std::string>();
    if (made(kueue_workload, name, job["metadata"]["namespace"]) != nullptr) return;
    const json& labels = job["metadata"]["labels"];
    int priority = 0;
    if (labels.contains(priority_class_label)) {
      const json* found = made(priority_class, labels[priority_class_label]);
      if (found == nullptr) return;  // Kueue tries again.
      priority = (*found)["value"];
    }
    json object = {{"metadata", {{"name", name}, {"namespace", job["metadata"]["namespace"]}}},
                   {"spec", {{"queueName", labels[queue_name_label]}, {"priority", priority}}}};
    object["metadata"]["creationTimestamp"] = fmt::format("2026-01-01T00:00:00.{:06}Z", server.version());
    object["metadata"]["ownerReferences"] = json::array();
    object["metadata"]["ownerReferences"].push_back({{"uid", job["metadata"]["uid"]}, {"controller", true}});
    put(kueue_workload, object);
  }

  void settle_kueue() {
    for (const json& job : all(batch_job)) make_workload(job);
    std::map<std::string, std::vector<json>> queues;
    for (json& one : server.all(path_of(made_kind(kueue_workload))))
      queues[one["spec"]["queueName"]].push_back(one);
    for (const json& queue : all(cluster_queue)) {
      const std::string name = queue["metadata"]["name"];
      settle_queue(queue, queues[name]);
    }
  }
  void settle_queue(const json& queue, std::vector<json>& workloads) {
    std::ranges::stable_sort(workloads, {}, [](const json& one) {
      return std::tuple(-one["spec"]["priority"].get<int>(),
                        one["metadata"]["creationTimestamp"].get<std::string>());
    });
    size_t admitted = 0, pending = 0;
    const auto is_admitted = [](const json& one) {
      return one.contains("status") && one["status"]["conditions"].size() == 2;
    };
    const auto job_of = [&](const json& one) {
      return made(batch_job, one["metadata"]["name"].get<std::string>().substr(4),
                  one["metadata"]["namespace"]);
    };
    for (const json& one : workloads)
      if (const json* job = job_of(one); job != nullptr && is_admitted(one) && !has_ended(*job)) ++admitted;
    for (json one : workloads) {
      const json* job = job_of(one);
      if (job == nullptr || is_admitted(one)) continue;
      const bool fits = admitted < slots;
      fits ? ++admitted : ++pending;
      json conditions = json::array();
      conditions.push_back(condition("QuotaReserved", fits, fits ? "reserved" : "insufficient unused quota"));
      if (fits) conditions.push_back(condition("Admitted", true, "admitted"));
      if (!one.contains("status") || one["status"]["conditions"] != conditions) {
        one["status"]["conditions"] = conditions;
        put(kueue_workload, one);
      }
      if (!fits) continue;
      json running = *job;
      running["spec"]["suspend"] = false;
      put(batch_job, running);
    }
    json next = queue;
    next["status"] = {{"pendingWorkloads", pending}, {"admittedWorkloads", admitted}};
    next["status"]["conditions"] = json::array();
    next["status"]["conditions"].push_back(condition("Active", true, "Can admit new workloads"));
    next["status"]["conditions"][0]["reason"] = "Ready";
    if (next != queue) put(cluster_queue, next);
  }

  // An object whose owners are gone is removed; one with several owners loses those that are gone.
  void collect_garbage() {
    std::vector<std::string> alive;
    for (const char* collection : {custom_queues, custom_jobs})
      for (const json& one : server.all(collection)) alive.push_back(one["metadata"]["uid"]);
    for (const char* kind : {batch_job, cluster_queue, local_queue, resource_flavor, priority_class,
                             kueue_cohort, kueue_workload}) {
      for (json one : all(kind)) {
        if (!one["metadata"].contains("ownerReferences")) continue;
        json owners = json::array();
        for (const json& owner : one["metadata"]["ownerReferences"])
          if (std::ranges::find(alive, owner["uid"].get<std::string>()) != alive.end())
            owners.push_back(owner);
        if (owners.empty()) {
          remove(kind, one);
        } else if (owners != one["metadata"]["ownerReferences"]) {
          one["metadata"]["ownerReferences"] = owners;
          put(kind, one);
        }
      }
      if (std::string_view(kind) == batch_job)
        for (const json& one : all(kind)) alive.push_back(one["metadata"]["uid"]);
    }
  }
};

}  // namespace carve::controller
