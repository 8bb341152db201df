// Any bytes as a node's response to a request for usage records are rejected with a message, or the records that
// pass the checks can be billed: no amount is impossible, no time is in the future, and an invoice of them adds up.
// The annotation with which a node names its port is read from the same bytes.
#include <cstdint>
#include <cstdlib>

#include "bill/invoice.h"
#include "controller/cluster/cluster_node.h"
#include "controller/cluster/record_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  using namespace carve::controller;
  constexpr int64_t now_ns = 1'796'000'000'000'000'000;
  const std::string text(reinterpret_cast<const char*>(data), size);
  kubernetes::ObjectMeta node;
  node.name = "n1";
  node.annotations[kubernetes::reader_annotation] = text;
  const auto reader = read_cluster_node(node);
  if (!reader && reader.error().message.empty()) std::abort();
  for (const LedgerCopy::Request& request :
       {LedgerCopy::Request{.ids = {}, .after = 0}, {.ids = {1, 2, 3}, .after = 0}}) {
    const auto page = check_page(text, request, "n1", PodEvidence(), now_ns, now_ns);
    if (!page) {
      if (page.error().message.empty()) std::abort();
      continue;
    }
    if (page->records.size() > max_records_per_page || page->refusals.size() > max_refusals) std::abort();
    std::vector<bill::Usage> usages;
    for (const ledger::UsageRecord& record : page->records) {
      const UsageRow row = usage_row("n1", 1, record, [](const std::string&) { return false; });
      if (row.end_ns > now_ns + max_clock_difference_ns || row.id > page->last) std::abort();
      if (row.end_ns != 0 && row.end_ns < row.from_ns) std::abort();
      usages.push_back(*usage_of(row));
    }
    const auto tariffs =
        bill::Tariffs::from({{.currency = "EUR", .units = bill::shipped_units(), .price = {1'000'000}}});
    const bill::Invoice invoice = bill::invoice(usages, *tariffs, {}, {now_ns, "controller", 1});
    if (bill::total(invoice.lines).amount < 0) std::abort();
  }
  return 0;
}
