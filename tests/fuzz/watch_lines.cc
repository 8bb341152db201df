// Any bytes as a page of a list, a line of a watch, a Status or a Lease are parsed or rejected with a
// message.
#include <cstdint>
#include <cstdlib>

#include "kubernetes/api/answers.h"
#include "kubernetes/api/lease_view.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto event = kubernetes::read_watch_event(text);
  if (!event && event.error().empty()) std::abort();
  const auto page = kubernetes::read_list_page(text);
  if (!page && page.error().empty()) std::abort();
  if (page)
    for (const kubernetes::ObjectMeta& item : page->items)
      if (item.uid.empty()) std::abort();
  const auto lease = kubernetes::read_lease(text);
  if (!lease && lease.error().empty()) std::abort();
  if (lease && lease->duration_seconds > 86'400) std::abort();
  if (kubernetes::read_status(text).message.size() > size) std::abort();
  return 0;
}
