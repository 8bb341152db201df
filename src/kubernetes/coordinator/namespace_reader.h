// Reads the settings and quotas of a namespace when a pod with slices is created in it, and caches them for 5
// s.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kubernetes/api/api_client.h"
#include "kubernetes/coordinator/webhook/namespace_rules.h"

namespace carve::kubernetes::coordinator {

class NamespaceReader {
 public:
  // Called with the rules, or with null and the reason in `problem`.
  using Done = std::function<void(const NamespaceRules*, const std::string& problem)>;

  explicit NamespaceReader(kubernetes::ApiClient& client) : client_(client) {}

  // Returns the rules if they are cached. Otherwise returns null, and read() calls `done` once, later.
  const NamespaceRules* find(const std::string& name);
  void read(const std::string& name, Done done);

 private:
  static constexpr kubernetes::Nanoseconds trust_ns = 5 * kubernetes::second_ns;
  static constexpr kubernetes::Nanoseconds deadline_ns = 3 * kubernetes::second_ns;  // A webhook has 5 s.
  static constexpr size_t max_known = 1'000;

  struct Known {
    NamespaceRules rules;
    kubernetes::Nanoseconds until;
  };
  struct Reading {
    NamespaceRules rules;
    std::vector<Done> waiting;
    std::unique_ptr<kubernetes::ApiCall> call;
  };
  void namespace_answered(const std::string& name, const kubernetes::ApiAnswer&);
  void quotas_answered(const std::string& name, const kubernetes::ApiAnswer&);
  void finish(const std::string& name, const std::string& problem);

  kubernetes::ApiClient& client_;
  std::map<std::string, Known> known_;
  std::map<std::string, Reading> readings_;
};

}  // namespace carve::kubernetes::coordinator
