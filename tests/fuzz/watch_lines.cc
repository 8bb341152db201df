// Any bytes as a page of a list or a line of a watch are read or refused with a sentence.
#include <cstdint>
#include <cstdlib>

#include "kube/answers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carve;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto event = kube::read_watch_event(text);
  if (!event && event.error().empty()) std::abort();
  const auto page = kube::read_list_page(text);
  if (!page && page.error().empty()) std::abort();
  if (page)
    for (const kube::ObjectMeta& item : page->items)
      if (item.uid.empty()) std::abort();
  return 0;
}
