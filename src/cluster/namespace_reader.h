// The rules of a namespace, read when a pod with slices is created in it and kept for 5 s.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/webhook/namespace_rules.h"
#include "kube/api_client.h"

namespace carve::cluster {

class NamespaceReader {
 public:
  // No value: the second text says why there are none.
  using Done = std::function<void(const NamespaceRules*, const std::string& problem)>;

  explicit NamespaceReader(kube::ApiClient& client) : client_(client) {}

  // Returns the rules if they are known, or null; then `done` is called once, later.
  const NamespaceRules* find(const std::string& name);
  void read(const std::string& name, Done done);

 private:
  static constexpr kube::Nanoseconds trust_ns = 5 * kube::second_ns;
  static constexpr kube::Nanoseconds deadline_ns = 3 * kube::second_ns;  // A webhook has 5 s.
  static constexpr size_t max_known = 1'000;

  struct Known {
    NamespaceRules rules;
    kube::Nanoseconds until;
  };
  struct Reading {
    NamespaceRules rules;
    std::vector<Done> waiting;
    std::unique_ptr<kube::ApiCall> call;
  };
  void namespace_answered(const std::string& name, const kube::ApiAnswer&);
  void quotas_answered(const std::string& name, const kube::ApiAnswer&);
  void finish(const std::string& name, const std::string& problem);

  kube::ApiClient& client_;
  std::map<std::string, Known> known_;
  std::map<std::string, Reading> readings_;
};

}  // namespace carve::cluster
