// Tokens for the usage records of the nodes (TokenRequest, authentication.k8s.io/v1). Each token is for one
// node: its audience is that node's, so it is of no use for the API server or for another node. A token is kept
// for four fifths of its lifetime.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/failure.h"
#include "kubernetes/api/api_client.h"

namespace carve::controller {

// The account to which the tokens belong. It needs ClusterRole carve-usage-reader and nothing else; the
// controller's own account needs the right to create tokens for it.
struct UsageAccount {
  std::string name_space = "carve-system";
  std::string name = "carve-usage-reader";
};

class UsageTokens {
 public:
  UsageTokens(kubernetes::ApiClient& client, UsageAccount account)
      : client_(client), account_(std::move(account)) {}

  using Got = std::function<void(Outcome<std::string>)>;
  // Passes a token for the node to `got`, never before this function returns. At most one call for each node
  // may be in progress.
  void get(const std::string& node, Got got);
  // Drops the node's token, for example because the node has rejected it.
  void forget(const std::string& node) { known_.erase(node); }
  // Drops everything about a node. `got` is not called any more.
  void remove(const std::string& node);

 private:
  struct Token {
    std::string text;
    kubernetes::Nanoseconds until = 0;
  };
  Outcome<Token> read(const kubernetes::ApiAnswer&) const;

  kubernetes::ApiClient& client_;
  const UsageAccount account_;
  std::map<std::string, Token> known_;
  std::map<std::string, std::unique_ptr<kubernetes::ApiCall>> calls_;  // A TokenRequest, or a timer.
};

}  // namespace carve::controller
