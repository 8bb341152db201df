// Decides how one node's ledger is copied: which records to request next, and what to write. It uses neither a
// socket nor the store, so agents on this machine and the nodes of a cluster are copied by the same rules.
//
//   LedgerCopy copy(node, position, terms, now);
//   while (const auto request = copy.next()) write(copy.take(answer to the request));
//
// Each write can be stored by itself: if the program ends after any of them, the next copy continues.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/billing/usage_store.h"

namespace carve::controller {

// Maximum number of ids in a request. The agent's API accepts 500.
inline constexpr size_t max_copied_ids = 100;

struct CopyWrite {
  std::vector<UsageRow> rows;
  // Open records of an earlier state of the ledger that the agent no longer has. They end when the agent was
  // last seen with them.
  std::vector<uint64_t> lost;
  uint32_t lost_ledger = 0;
  ledger::Stamp lost_at;  // Without a boot id if only the record's own start is known.
  std::optional<SeenLedger> seen;
  // The rows are the first of a new ledger, so the store must not have any of them. Otherwise an old ledger of the
  // node was restored.
  bool is_new_ledger = false;
};

class LedgerCopy {
 public:
  // Returns whether the named queue is prepaid.
  using IsPrepaid = std::function<bool(const std::string& queue)>;

  // `now` must have been taken before the first request.
  LedgerCopy(std::string node, CopyPosition, IsPrepaid, ledger::Stamp now);

  struct Request {
    std::vector<uint64_t> ids;  // The records with these ids; if empty, those with ids above `after`.
    uint64_t after = 0;
  };
  // Returns the next request, or no value if the copy is complete.
  std::optional<Request> next() const;

  // Takes the response to the request of next(). `last` is the largest id in the response, which may belong to
  // a record that the caller has refused; 0 if the response was empty. Fails if the response contradicts an
  // earlier one.
  Outcome<CopyWrite> take(const std::vector<ledger::UsageRecord>&, uint64_t last);

  enum class Loss : uint8_t {
    none,
    newest,      // The ledger has lost its newest records. No record is copied twice.
    everything,  // It has none of the records that were compared, so it is a new ledger.
  };
  Loss loss() const { return loss_; }
  uint32_t ledger() const { return ledger_; }  // Its number, from 1.
  size_t taken() const { return taken_; }      // Number of rows so far.

 private:
  enum class Phase : uint8_t {
    compare,  // Requests the newest copied record and the open ones.
    search,   // The newest record is missing: looks for any other copied record.
    first,    // None was found: requests the first records, which prove that the ledger is a new one.
    again,    // Only the newest records are missing: requests the open ones that were found.
    fresh,    // Requests records that were not copied yet.
    done,
  };
  Outcome<CopyWrite> take_known(const std::vector<ledger::UsageRecord>&);
  Outcome<CopyWrite> take_first(const std::vector<ledger::UsageRecord>&, uint64_t last);
  Outcome<CopyWrite> take_fresh(const std::vector<ledger::UsageRecord>&, uint64_t last);
  CopyWrite decide_loss();
  void add(CopyWrite&, const ledger::UsageRecord&);
  size_t chunk_end() const;
  bool is_open(uint64_t id) const;

  const std::string node_;
  const CopyPosition position_;
  const IsPrepaid is_prepaid_;
  const ledger::Stamp now_;
  std::vector<CopiedRecord> known_;  // To request in the phases before `fresh`.
  size_t at_ = 0;                    // Number of those that were requested.
  std::set<uint64_t> found_;         // In the phase `search`.
  Phase phase_ = Phase::fresh;
  Loss loss_ = Loss::none;
  uint32_t ledger_ = 1;
  uint64_t last_ = 0;
  bool has_open_ = false;
  size_t taken_ = 0;
};

}  // namespace carve::controller
