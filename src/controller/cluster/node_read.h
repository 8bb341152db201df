// One read of a node's usage records: it gets a token, compares the node's ledger with the copy, and requests
// and stores the new records, one page after the other. A stored record is never stored again, so the read
// may end at any time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/cluster/cluster_node.h"
#include "controller/cluster/record_check.h"
#include "controller/cluster/usage_tokens.h"

namespace carve::controller {

struct ReadResult {
  std::string problem;                // Why the read failed; empty if it did not.
  bool has_more = false;              // It ended after max_pages.
  std::vector<std::string> refusals;  // At most max_refusals, of `refused`.
  size_t refused = 0;
  std::string undecided;  // Why it ended before the last record; empty if it did not.
  LedgerCopy::Loss loss = LedgerCopy::Loss::none;
  uint32_t ledger = 0;  // Number of the node's ledger.
  size_t records = 0, bytes = 0;
};

class NodeRead : public std::enable_shared_from_this<NodeRead> {
 public:
  struct Tools {
    kubernetes::ApiClient& api;  // The API server, whose client also has the timers.
    UsageTokens& tokens;
    UsageBooks& books;
    const PodEvidence& evidence;
    // Returns a client of the node, which sends nothing to a server without the node's key.
    std::function<std::unique_ptr<kubernetes::ApiClient>(const ClusterNode&, const std::string& token)>
        connect;
    std::function<ledger::Stamp()> now;
    std::function<int64_t()> heard_ns;  // See PodEvidence::check().
  };
  static constexpr kubernetes::Nanoseconds request_ns = 10 * kubernetes::second_ns;
  static constexpr kubernetes::Nanoseconds patience_ns = 60 * kubernetes::second_ns;  // For the whole read.
  static constexpr size_t max_pages = 100;
  static constexpr size_t max_refused = 1'000;  // Beyond it the read fails, and the node is read less often.

  // Calls `ended` once, after begin() has returned. The read may be destroyed at any time except in `ended`;
  // then nothing is called back.
  NodeRead(const Tools&, ClusterNode, std::function<void(const ReadResult&)> ended);
  ~NodeRead();
  void begin();

 private:
  // Returns a function that calls `act` unless this read has been destroyed or has ended.
  template <class T>
  std::function<void(T)> alive(void (NodeRead::*act)(T));
  void got_token(Outcome<std::string>);
  void got_position(Outcome<CopyPosition>);
  void request();
  void answered(kubernetes::ApiAnswer);
  void written(Outcome<void>);
  void fail(const std::string& problem);
  void end();

  const Tools& tools_;
  const ClusterNode node_;
  std::function<void(const ReadResult&)> ended_;  // Null when it has been called.
  ReadResult result_;
  ledger::Stamp now_;
  std::unique_ptr<kubernetes::ApiClient> client_;
  std::optional<LedgerCopy> copy_;
  LedgerCopy::Request asked_;
  size_t pages_ = 0;
  std::unique_ptr<kubernetes::ApiCall> call_, timer_;  // Declared after the client that they use.
};

}  // namespace carve::controller
